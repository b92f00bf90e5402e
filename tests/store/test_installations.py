from checkrein.store.installations import add_installation, installations, remove_installation


def test_where_we_are_installed_is_known_once_per_place(store):
    for agent, folder in (("codex", ""), ("claude-code", "/p"), ("claude-code", "/p"), ("claude-code", "")):
        store.write(lambda tx, agent=agent, folder=folder: add_installation(tx, agent, folder, 1.0))
    assert installations(store) == [("claude-code", ""), ("claude-code", "/p"), ("codex", "")]


def test_removing_takes_exactly_that_place(store):
    for folder in ("", "/p"):
        store.write(lambda tx, folder=folder: add_installation(tx, "codex", folder, 1.0))
    assert store.write(lambda tx: remove_installation(tx, "codex", "/p")) == 1
    assert store.write(lambda tx: remove_installation(tx, "codex", "/p")) == 0
    assert store.write(lambda tx: remove_installation(tx, "cursor", "")) == 0
    assert installations(store) == [("codex", "")]
