import os
import socket
import subprocess
import sys

import pytest

from checkrein.peers import Peer
from checkrein.tcp_peers import TcpPeers, _read_lsof
from patience import PATIENCE

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
CONNECT = """
import socket, sys
family = socket.AF_INET6 if sys.argv[2] == "6" else socket.AF_INET
line = socket.socket(family, socket.SOCK_STREAM)
line.connect(("::ffff:127.0.0.1" if sys.argv[2] == "6" else "127.0.0.1", int(sys.argv[1])))
sys.stdin.read()
"""


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def connect(listening):
    """Another process that connects: (its number, its end of the connection)."""
    started, lines = [], []

    def start(family="4"):
        port = str(listening.getsockname()[1])
        made = subprocess.Popen([sys.executable, "-c", CONNECT, port, family], stdin=subprocess.PIPE)
        started.append(made)
        line, address = listening.accept()
        lines.append(line)
        return made.pid, address[:2]

    yield start
    for line in lines:
        line.close()
    for each in started:
        each.stdin.close()
        each.wait(PATIENCE)


@pytest.mark.parametrize("family", ["4", "6"])
def test_the_process_at_the_other_end_is_found(listening, connect, family):
    finder, port = TcpPeers(), listening.getsockname()[1]
    for _ in range(2):
        pid, address = connect(family)
        assert finder.find(address, port) == Peer(pid, os.getuid())
        assert finder.find(address, port) == Peer(pid, os.getuid())


def test_each_connection_has_its_own(listening, connect):
    finder, port = TcpPeers(), listening.getsockname()[1]
    found = [connect() for _ in range(3)]
    assert [finder.find(address, port).pid for _, address in found] == [pid for pid, _ in found]


def test_nobody_is_found_where_nobody_is(listening, connect, tmp_path):
    finder, port = TcpPeers(), listening.getsockname()[1]
    _, address = connect()
    assert finder.find((address[0], 1), port) is None
    assert finder.find(address, port + 1) is None
    assert TcpPeers(tmp_path).find(address, port) is None


def table(*rows):
    """The kernel's table of connections: local end, remote end, user and inode of each."""
    lines = [f" 0: {here} {there} 01 0:0 00:0 0 {uid} 0 {inode} 1" for here, there, uid, inode in rows]
    return "\n".join(["  sl  local_address rem_address", *lines, ""])


@pytest.fixture
def proc(tmp_path):
    """A `/proc` as the test writes it."""

    def write(*rows, holding=None):
        (tmp_path / "net").mkdir()
        (tmp_path / "net" / "tcp").write_text(table(*rows))
        for pid, inode in (holding or {}).items():
            (tmp_path / str(pid) / "fd").mkdir(parents=True)
            (tmp_path / str(pid) / "fd" / "3").symlink_to(f"socket:[{inode}]")
        return TcpPeers(tmp_path)

    return write


@linux
@pytest.mark.invariant("both ends of the connection are compared whole")
def test_the_same_local_port_that_leads_to_another_address_is_another_connection(proc):
    uid = os.geteuid()
    finder = proc(
        ("0100007F:9C40", "0200007F:1CA3", uid, 11),
        ("0100007F:9C40", "0100007F:1CA3", uid, 22),
        holding={501: 11, 502: 22},
    )
    assert finder.find(("127.0.0.1", 40000), 7331) == Peer(502, uid)


@linux
def test_of_another_user_the_system_shows_the_user_only(proc):
    own, other = os.geteuid(), os.geteuid() + 1
    finder = proc(("0100007F:9C40", "0100007F:1CA3", other, 11), ("0100007F:9C41", "0100007F:1CA3", own, 12))
    assert finder.find(("127.0.0.1", 40000), 7331) == Peer(0, other)
    assert finder.find(("127.0.0.1", 40001), 7331) is None


def test_what_lsof_says_is_read():
    text = "p12\nu501\nf7\nn127.0.0.1:1->127.0.0.1:7330\np13\nu502\nf8\nn127.0.0.1:2->127.0.0.1:7330\n"
    assert _read_lsof(text, "127.0.0.1:2->127.0.0.1:7330") == Peer(13, 502)
    assert _read_lsof(text, "127.0.0.1:3->127.0.0.1:7330") is None
    assert _read_lsof("", "x") is None
