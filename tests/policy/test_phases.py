import pytest

from checkrein.policy.phases import STRICTEST, blocked, gated, phase_named
from checkrein.settings import DOMAINS, PHASES, Phase

LET_THROUGH = {
    "planning": {"file_read", "git_read", "docs_write", "web_read"},
    "building": set(DOMAINS) - {"git_remote"},
    "auditing": {"file_read", "git_read", "web_read"},
}


@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_lets_through_what_it_is_for(phase):
    through = {domain for domain in DOMAINS if not blocked(phase, PHASES[phase], (domain,))}
    assert through == LET_THROUGH[phase]
    assert bool(blocked(phase, PHASES[phase], ("mcp:mail",))) == (phase != "building")


@pytest.mark.parametrize("name", [None, "", "Building", "building ", "unknown", 5, [], {}])
def test_a_phase_nobody_can_name_is_the_strictest(name):
    assert phase_named(name, PHASES) == STRICTEST == "auditing"


def test_a_known_phase_keeps_its_name():
    assert [phase_named(name, PHASES) for name in PHASES] == list(PHASES)


@pytest.mark.parametrize("phase", PHASES)
def test_one_bad_domain_blocks_the_call(phase):
    assert blocked(phase, PHASES[phase], ("file_read", "git_remote"))
    assert blocked(phase, PHASES[phase], ("git_remote", "file_read"))


def test_a_kind_of_write_is_a_write():
    only = Phase(denied=("file_write",))
    assert all(blocked("building", only, (kind,)) for kind in ("file_write", "file_write_src", "docs_write"))
    assert not blocked("planning", Phase(allowed=("file_write",)), ("docs_write",))
    assert blocked("planning", Phase(allowed=("docs_write",)), ("file_write",))
    assert gated(Phase(trust_gated=("file_write",)), ("file_read", "docs_write")) == ("docs_write",)


def test_a_denial_outranks_every_other_list():
    everywhere = Phase(allowed=("x",), denied=("x",), trust_gated=("x",))
    assert all(blocked(name, everywhere, ("x",)) for name in PHASES)


def test_a_gated_domain_is_part_of_the_phase():
    assert not blocked("planning", Phase(trust_gated=("x",)), ("x",))
