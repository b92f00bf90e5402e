"""`checkrein open` gives a link that works once."""

import http.client
from urllib.parse import urlsplit

from patience import PATIENCE


def get(url, **headers):
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
    connection.request("GET", parts.path, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_the_link_signs_in_once(run, user_settings):
    user_settings("[console]\nport = 0\n")
    url = run.json("open", "--json")["url"]
    assert url.startswith("http://127.0.0.1:")
    assert get(url).status == 200
    assert get(url[:-4] + "AAAA").status == 403
    assert run.json("open", "--json")["url"] != url
    run("down")


def test_an_agent_gets_no_link(run, server, agent):
    agent.judged("ls")
    assert agent.run("open", "--no-browser").returncode == 7
