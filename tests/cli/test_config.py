import json
from pathlib import Path

from checkrein.settings import Settings, documented_keys
from checkrein.settings.check import apply
from checkrein.settings.sources import parse, user_file


def test_show_marks_what_differs_from_the_default(run, user_settings):
    user_settings("[trust]\nfailure_decay = 0.7")
    text = run("config", "show")
    assert "failure_decay = 0.7    # changed" in text
    assert "hibernation_days = 14\n" in text
    assert run.json("config", "show", "--json")["trust"]["failure_decay"] == 0.7


def test_check_says_what_is_wrong_or_good(run, user_settings, project):
    assert run("config", "check") == "The settings are good.\n"
    Path(project, "checkrein.toml").write_text("[trust]\ninitial_score = 0.5\n")
    assert "until `checkrein policy accept`" in run("config", "check")
    user_settings("[trust]\nhibernation_dys = 3")
    assert "Did you mean `trust.hibernation_days`?" in run("config", "check", code=3)
    report = run.json("config", "check", "--json", code=3)
    assert report["ok"] is False
    assert "hibernation_dys" in report["fault"]
    user_settings("[[rules]]\naction = 'allow'\n")
    assert "rules[1]" in run("config", "check", code=3)


def test_path_says_where_files_are(run, project, home):
    places = run.json("config", "path", "--json")
    assert places == {
        "user": str(home / "config/checkrein/config.toml"),
        "project": f"{project}/checkrein.toml",
        "state": str(home / "state/checkrein"),
    }
    assert run("config", "path").count("not there yet") == 3


def test_init_writes_a_file_that_changes_nothing_and_names_everything(run):
    run("config", "init")
    content = user_file().read_bytes()
    assert apply(Settings(), parse(content, "x")) == Settings()
    for key in documented_keys():
        if "NAME" not in key:
            assert f"# {key.split('.')[1]} = ".encode() in content
    assert "exists" in run("config", "init", code=2)
    user_file().write_text("# mine")
    run("config", "init", "--force")
    assert Path(f"{user_file()}.bak").read_text() == "# mine"


def test_the_template_works_when_its_lines_are_uncommented(run):
    run("config", "init")
    text = user_file().read_text()
    live = "\n".join(
        line[2:] if line.startswith("# ") and " = " in line else line for line in text.splitlines()
    )
    live = live.replace("# [[rules]]", "[[rules]]")
    settings = apply(Settings(), parse(live.encode(), "x"))
    assert settings.trust == Settings().trust
    assert len(settings.rules) == 1


def test_an_oath_harness_settings_file_is_imported(run, tmp_path):
    source = tmp_path / "settings.json"
    source.write_text(
        json.dumps(
            {"trust": {"hibernation_days": 7, "recovery_boost_multiplier": 1.5}, "audit": {"log_dir": "a"}}
        )
    )
    assert "Left out trust.recovery_boost_multiplier" in run("config", "init", "--from", str(source))
    shown = run.json("config", "show", "--json")
    assert (shown["trust"]["hibernation_days"], shown["audit"]["log_dir"]) == (7, "a")
    source.write_text('{"trust": {"initial_score": 0.99}}')
    assert "initial_score" in run("config", "init", "--force", "--from", str(source), code=3)
    assert run.json("config", "show", "--json")["trust"]["hibernation_days"] == 7
    assert "No such file" in run("config", "init", "--force", "--from", "/nowhere", code=2)


def test_secrets_are_not_shown(run, user_settings):
    user_settings('[notify]\nurls = ["slack://s3cret/a"]\nwebhook_urls = ["https://example.com/s3cret"]')
    text = run("config", "show")
    assert 'urls = ["slack://[masked]"]    # changed' in text
    assert 'webhook_urls = ["https://example.com/[masked]"]' in text
    assert "s3cret" not in text
    found = run.json("config", "show", "--json")
    assert found["notify"]["urls"] == ["slack://[masked]"]
    assert "s3cret" not in str(found)
