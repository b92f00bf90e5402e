"""The core: decides calls, asks people, and turns an approval into exactly one run."""
