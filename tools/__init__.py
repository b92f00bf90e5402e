"""Programs that check the test suite itself. Run by `make`; never imported by the product."""
