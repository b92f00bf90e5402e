from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from checkrein.errors import LedgerError
from checkrein.ledger.checkpoints import KEY, Checkpoint, Signer, is_signed
from checkrein.ledger.copies import FILE, Copies, kept, newest_in


def test_the_key_is_made_once_and_only_its_owner_reads_it(tmp_path):
    first = Signer(tmp_path).public
    assert Signer(tmp_path).public == first
    assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / KEY).with_suffix(".new").exists()


def test_a_signature_covers_every_word(tmp_path):
    signer = Signer(tmp_path)
    made = signer.sign(7, "ab" * 32, 5.0, 3)
    assert made.content == {"seq": 7, "hash": "ab" * 32, "at": 5.0, "key": signer.public, "previous": 3}
    assert is_signed(made, signer.public)
    assert not is_signed(Checkpoint(made.body.replace("7", "8"), made.signature), signer.public)
    assert not is_signed(Checkpoint(made.body, "00" * 64), signer.public)
    assert not is_signed(Checkpoint(made.body, "not hex"), signer.public)
    assert not is_signed(made, "11" * 32)
    assert not is_signed(made, "")


def test_checkpoints_are_kept_beside_the_store(tmp_path):
    signer, copies = Signer(tmp_path), Copies(tmp_path, tmp_path / "elsewhere" / "newest.json")
    assert kept(tmp_path) == []
    assert (copies.last_in_file(), newest_in(copies.newest)) == (None, None)
    made = [signer.sign(seq, "ab" * 32, 5.0) for seq in (1, 2)]
    for each in made:
        assert copies.keep([each])
    assert kept(tmp_path) == made
    assert copies.last_in_file() == newest_in(copies.newest) == made[-1]
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"body": "cut sho')
    assert kept(tmp_path) == made
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"\n" + msgspec.json.encode(made[0]) + b"\n")
    with pytest.raises(LedgerError, match="line 3"):
        kept(tmp_path)


def test_a_line_cut_short_is_repaired_before_the_next_is_written(tmp_path):
    signer, copies = Signer(tmp_path), Copies(tmp_path, None)
    made = [signer.sign(seq, "ab" * 32, 5.0) for seq in (1, 2, 3)]
    copies.keep(made[:2])
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"body": "cut sho')
    assert copies.last_in_file() == made[1]
    copies.repair()
    copies.keep(made[2:])
    assert kept(tmp_path) == made


def test_a_copy_that_cannot_be_written_is_said(tmp_path):
    made = Signer(tmp_path).sign(1, "ab" * 32, 5.0)
    (tmp_path / FILE).mkdir()
    assert not Copies(tmp_path, None).keep([made])
    (tmp_path / FILE).rmdir()
    (tmp_path / "a file").touch()
    assert Copies(tmp_path, tmp_path / "a file" / "newest.json").keep([made])
    (tmp_path / "newest.json").write_text("{}")
    with pytest.raises(LedgerError, match="cannot be read"):
        newest_in(tmp_path / "newest.json")


@pytest.mark.parametrize("content", [b"", b"x" * 5, None])
def test_a_key_that_cannot_be_used_is_an_error_that_names_it(tmp_path, content):
    if content is None:
        (tmp_path / KEY).mkdir()
    else:
        (tmp_path / KEY).write_bytes(content)
    with pytest.raises(LedgerError, match=r"ledger\.key"):
        Signer(tmp_path).sign(1, "ab" * 32, 5.0)


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
