from checkrein.cli import servers_show as show
from checkrein.settings.servers import ServerSpec

EVIL = "\x1b[2J\u202egone"


def test_what_servers_wrote_cannot_drive_the_terminal(capsys):
    tool = {"server": EVIL, "tool": EVIL, "state": EVIL, "definition": {"description": EVIL}, "hidden": EVIL}
    show.show_tools([{**tool, "flags": [EVIL]}, {**tool, "hidden": "", "verdict": "ask", "reasons": [EVIL]}])
    definition = {"server": EVIL, "kind": "tool", "name": EVIL, "state": EVIL, "shown": EVIL, "hidden": EVIL}
    show.show_definitions([definition, {**definition, "diff": [f"+{EVIL}"]}], {})
    show.show_briefly([{**definition, "flags": [EVIL]}], {})
    show.show_servers({"servers": [{"name": EVIL, "error": EVIL, "state": EVIL}]})
    show.show_test({"info": {"name": EVIL}, "version": EVIL, "tools": [{"name": EVIL}]})
    show.show_state({"name": EVIL, "error": EVIL, "remedy": EVIL})
    said = capsys.readouterr().out
    assert "gone" in said
    assert "\x1b[2J" not in said
    assert "\u202e" not in said


def test_the_command_is_shown_as_a_shell_would_read_it(capsys):
    show.show_command(ServerSpec(name="s", command="a b", args=("c;d",), env={"K": "v3lue"}, inherit=("L",)))
    show.show_command(ServerSpec(name="s", url="https://x.test", headers={"H": "v3lue"}))
    said = capsys.readouterr().out
    assert "'a b' 'c;d'" in said
    assert "K, L (yours)" in said
    assert "https://x.test" in said
    assert "v3lue" not in said


def test_parameters_in_one_line():
    assert show.parameters(None) == show.parameters({"properties": []}) == ""
    schema = {"properties": {"a": {"type": "string"}, "b": True}, "required": ["a"]}
    assert show.parameters(schema) == "a: string, b?: any"
    assert len(show.parameters({"properties": {f"p{n}": {} for n in range(10_000)}})) <= 400


def test_a_long_definition_is_cut_and_says_so(capsys):
    long = {"server": "s", "kind": "tool", "name": "t", "shown": "word " * 1000}
    show.show_definitions([long], {"s/t": "high"})
    said = capsys.readouterr().out
    assert "--full" in said
    assert "risk high" in said
    show.show_definitions([long], {}, whole=True)
    whole = capsys.readouterr().out
    assert "--full" not in whole
    assert whole.count("word") == 1000


def test_a_tool_nobody_accepted_is_described_by_what_is_shown(capsys):
    shown = '{"description": "Reads.", "inputSchema": {"properties": {"x": {"type": "number"}}}}'
    show.show_tools(
        [{"server": "s", "tool": "t", "shown": shown}, {"server": "s", "tool": "u", "shown": "{"}]
    )
    said = capsys.readouterr().out
    assert "Reads." in said
    assert "x?: number" in said
