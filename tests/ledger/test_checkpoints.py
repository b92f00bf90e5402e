from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from checkrein.errors import LedgerError
from checkrein.ledger.checkpoints import FILE, KEY, Checkpoint, Signer, is_signed, kept


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    first = Signer(tmp_path).public
    assert Signer(tmp_path).public == first
    assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / KEY).with_suffix(".new").exists()


def test_a_signature_covers_every_word(tmp_path):
    signer = Signer(tmp_path)
    made = signer.sign(7, "ab" * 32, 5.0)
    assert made.content == {"seq": 7, "hash": "ab" * 32, "at": 5.0, "key": signer.public}
    assert is_signed(made, signer.public)
    assert not is_signed(Checkpoint(made.body.replace("7", "8"), made.signature), signer.public)
    assert not is_signed(Checkpoint(made.body, "00" * 64), signer.public)
    assert not is_signed(Checkpoint(made.body, "not hex"), signer.public)
    assert not is_signed(made, "11" * 32)
    assert not is_signed(made, "")


def test_checkpoints_are_kept_beside_the_store(tmp_path):
    signer = Signer(tmp_path)
    assert kept(tmp_path) == []
    made = [signer.sign(seq, "ab" * 32, 5.0) for seq in (1, 2)]
    for each in made:
        signer.keep(each)
    assert kept(tmp_path) == made
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"body": "cut sho')
    assert kept(tmp_path) == made
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"\n" + msgspec.json.encode(made[0]) + b"\n")
    with pytest.raises(LedgerError, match="line 3"):
        kept(tmp_path)


@pytest.mark.parametrize("body", ["not json", "[]", "{}", '{"seq": "1", "hash": "x"}'])
def test_a_checkpoint_nobody_can_read_is_an_error_with_a_name(body):
    with pytest.raises(LedgerError, match="cannot be read"):
        Checkpoint(body, "00").content  # noqa: B018


def test_two_processes_that_make_the_key_at_once_have_the_same(tmp_path):
    """Each thinks there is none yet; only one of the keys may be it."""
    signers = [Signer(tmp_path) for _ in range(12)]
    with ThreadPoolExecutor(12) as pool:
        keys = set(pool.map(lambda signer: signer.public, signers))
    assert keys == {Signer(tmp_path).public}
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.key"]
