"""The official suites through the gateway, beside the same server alone: nothing may be lost on the way."""

import urllib.request

import pytest

from e2e.clients.processes import running
from e2e.gateway import parts, suites
from e2e.gateway.gate import Gate
from e2e.gateway.shim import Shim
from patience import until

pytestmark = pytest.mark.timeout(600)


def answers(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/mcp", timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The port of the server by itself, over HTTP."""
    port = suites.free_port()
    words, place = parts.everything(port), tmp_path_factory.mktemp("alone")
    with running(words, env={"PATH": "/usr/bin:/bin", "HOME": str(place)}, cwd=place):
        until(lambda: answers(port))
        yield port


def once(url, place):
    """Each suite's checks at an address, run when they are first looked at."""
    kept = {}

    def look(name):
        if name not in kept:
            kept[name] = suites.run(name, url, place / f"results-{len(kept)}")
        return kept[name]

    return look


@pytest.fixture(scope="module")
def direct(alone, tmp_path_factory):
    """Without us."""
    return once(f"http://localhost:{alone}/mcp", tmp_path_factory.mktemp("direct"))


@pytest.fixture(scope="module")
def gate():
    words = parts.everything()
    with Gate().entered() as made:
        made.add("everything", words)
        yield made


@pytest.fixture(scope="module")
def through(gate, tmp_path_factory):
    """Through us."""
    with Shim(*gate.client(), "everything") as door:
        yield once(door.url, tmp_path_factory.mktemp("through"))


@pytest.mark.parametrize("name", suites.SUITES)
def test_our_own_server_passes_alone(direct, name):
    """What the comparison stands on."""
    assert suites.failing(direct(name)) == {}


@pytest.mark.parametrize("name", suites.SUITES)
def test_the_names_in_between_change_no_check(direct, alone, name, tmp_path):
    """The shim before the server alone: whatever is lost below is lost by the gateway."""
    shim = Shim(alone, "nobody-asks-for-it", "")
    shim.prefix = ""
    with shim:
        through = suites.run(name, shim.url, tmp_path / "results")
    assert suites.worse(direct(name), through) == []


@pytest.mark.parametrize("name", suites.SUITES)
def test_nothing_that_passes_alone_fails_through_the_gateway(direct, through, name):
    lost = suites.worse(direct(name), through(name))
    known = suites.expected()
    assert [each for each in lost if ":".join(each[0][:2]) not in known] == []


def test_every_expected_failure_still_is_one(direct, through):
    lost = [each for name in suites.SUITES for each in suites.worse(direct(name), through(name))]
    assert set(suites.expected()) <= {":".join(key[:2]) for key, _, _ in lost}
