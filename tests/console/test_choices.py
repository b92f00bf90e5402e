from checkrein.console import choices


def test_values_are_found_by_leaping_through_the_index(pipeline, work, project):
    work(3, tool="Read", arguments={"file_path": f"{project}/x.py"})
    work(2, command="ls")
    pipeline.store.write(pipeline.ledger.file)
    assert choices.values(pipeline.store, "tool") == ["Bash", "Read"]
    assert choices.values(pipeline.store, "tool", most=1) == ["Bash"]
    assert choices.values(pipeline.store, "nothing") == []


def test_projects_are_those_with_calls_trust_or_sessions(pipeline, work, project):
    work(1)
    assert choices.projects(pipeline.store) == [project]
