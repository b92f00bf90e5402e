import pytest

from receiver import Receiver


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()


def test_a_trial_goes_through_every_channel(run, user_settings, receiver):
    user_settings(f'[notify]\nurls = ["{receiver.apprise}"]\nwebhook_urls = ["{receiver.url}"]')
    text = run("notify", "test")
    assert text.splitlines() == [
        "sent    json://[masked]",
        f"sent    http://127.0.0.1:{receiver.port}/[masked]",
    ]
    assert {each.json.get("title") for each in receiver.got} == {"Checkrein can reach you"}


def test_one_that_fails_is_named_and_the_exit_code_says_so(run, user_settings, receiver):
    receiver.status = 404
    user_settings(f'[notify]\nwebhook_urls = ["{receiver.url}"]')
    assert run("notify", "test", code=1).startswith("FAILED  http://127.0.0.1:")
    assert run.json("notify", "test", "--json", code=1)[0]["trouble"] == "it answered 404"


def test_without_channels_it_says_where_to_write_them(run):
    assert "[notify]" in run("notify", "test", code=4)
    assert run.json("notify", "test", "--json") == []


def test_no_agent_makes_it_ring(server, agent):
    done = agent.run("notify", "test")
    assert done.returncode == 7
    assert "Only a person" in done.stderr
