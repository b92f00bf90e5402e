import json
import stat

from checkrein.call import tool_call
from checkrein.doors.hooks import trustfiles
from checkrein.policy.trustfile import parse
from checkrein.settings.sources import state_dir


def earn(pipeline, project):
    call = tool_call({"tool": "Bash", "arguments": {"command": "ls"}, "project": project})
    pipeline.finish(pipeline.decide(call).entry, "success")


def test_the_file_holds_what_was_earned_and_can_be_read_back(pipeline, project, clock):
    earn(pipeline, project)
    path = trustfiles.write(pipeline, project)
    assert json.loads(path.read_bytes())["version"] == "2"
    found = parse(path.read_bytes(), clock())
    assert not found.bad
    assert found.states["file_read"].score > 0.3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == [trustfiles.FILE]


def test_it_lies_in_the_state_directory_one_for_each_project(pipeline, project):
    one, other = trustfiles.path_for(project), trustfiles.path_for("/elsewhere/project")
    assert one != other
    for path in (one, other, trustfiles.path_for("/../.."), trustfiles.path_for("")):
        assert path.resolve().is_relative_to(state_dir() / "trust")


def test_what_somebody_writes_there_is_never_read(pipeline, project):
    earn(pipeline, project)
    path = trustfiles.write(pipeline, project)
    path.write_text('{"version": "2", "domains": {"file_read": {"score": 1.0}}}')
    call = tool_call({"tool": "Bash", "arguments": {"command": "ls"}, "project": project})
    assert pipeline.decide(call).verdict.trust["file_read"] < 0.4
    assert json.loads(trustfiles.write(pipeline, project).read_bytes()) != {}


def test_a_file_that_cannot_be_written_costs_the_file_only(pipeline, project):
    earn(pipeline, project)
    path = trustfiles.path_for(project)
    path.mkdir(parents=True)
    (path / "in the way").write_text("")
    trustfiles.write(pipeline, project)
    assert [each.name for each in path.parent.iterdir()] == [trustfiles.FILE]
    folder = trustfiles.path_for("/elsewhere").parent
    folder.write_text("a file where the folder should be")
    trustfiles.write(pipeline, "/elsewhere")
