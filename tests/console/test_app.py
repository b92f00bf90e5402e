from checkrein.console.app import ACTIONS, PAGES


def test_pages_read_and_actions_change(visitor):
    assert not set(PAGES) & set(ACTIONS)
    for path in ACTIONS:
        assert visitor.get(path.replace("{id}", "x")).status in (404, 405), path


def test_a_failure_of_ours_is_said_kept_and_dressed(visitor, console, monkeypatch):
    def broken(*_):
        raise RuntimeError("oops")

    monkeypatch.setattr("checkrein.console.choices.projects", broken)
    answer = visitor.get("/health")
    assert answer.status == 500
    assert "oops" not in answer.text
    assert "content-security-policy" in answer.headers
    monkeypatch.undo()
    assert "RuntimeError: oops" in visitor.get("/health").text


def test_static_files_stay_in_their_folder(visitor):
    assert visitor.request("GET", "/static/console.js").status == 200
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/"):
        assert visitor.request("GET", path).status in (401, 404), path
