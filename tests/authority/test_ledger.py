import pytest

from checkrein.errors import NotFoundError
from checkrein.ledger.checkpoints import Checkpoint, is_signed


def test_the_record_is_signed_as_it_is_now(do, pipeline):
    with pytest.raises(NotFoundError, match="Nothing"):
        do("ledger.checkpoint")
    for number in (1, 2):
        pipeline.note("test", {})
        made = Checkpoint(**do("ledger.checkpoint"))
        assert made.content["seq"] == number
        assert is_signed(made, pipeline.ledger.signer.public)
    assert Checkpoint(**do("ledger.checkpoint")) == made
