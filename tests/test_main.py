import sys

import pytest

from checkrein.__main__ import main


def test_an_unsupported_system_is_told_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="not supported yet"):
        main()


def test_it_runs_the_command_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["checkrein", "--version"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    assert "checkrein" in capsys.readouterr().out
