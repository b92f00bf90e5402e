from checkrein.store import lookup, records


def record(seq, kind="decided", entry=""):
    return (seq, float(seq), kind, entry, "{}", f"hash-{seq}")


def append(store, *rows):
    store.write(lambda tx: [records.append(tx, row) for row in rows])


def test_entries_are_found_by_what_a_person_remembers(store):
    append(
        store,
        record(1, entry="aa1"),
        record(2, entry="aa2"),
        record(3, entry="bb3"),
        record(4, "finished", "aa1"),
    )
    cards = [
        ("aa1", ["project:/p", "tool:Bash", "domain:network"]),
        ("aa2", ["project:/p", "tool:Read", "domain:file_read"]),
        ("bb3", ["project:/q", "tool:Bash", "domain:package", "domain:network"]),
    ]
    store.write(lambda tx: lookup.file(tx, 3, cards))
    store.write(lambda tx: lookup.file(tx, 4, cards))
    assert lookup.filed(store) == 4

    def found(*terms, low="", high="", limit=10):
        return lookup.find(store, terms, low, high, limit)

    assert found() == ["bb3", "aa2", "aa1"]
    assert found("project:/p") == ["aa2", "aa1"]
    assert found("domain:network") == ["bb3", "aa1"]
    assert found("domain:network", "project:/p") == ["aa1"]
    assert found("tool:Bash", "domain:network", "project:/q") == ["bb3"]
    assert found("tool:nothing") == []
    assert found(low="aa2") == ["bb3", "aa2"]
    assert found("project:/p", high="aa2") == ["aa1"]
    assert found(limit=1) == ["bb3"]
    assert lookup.is_filed(store, "aa1", ["tool:Bash", "project:/p"])
    assert not lookup.is_filed(store, "aa1", ["tool:Read"])
    assert [row[0] for row in records.of_entries(store, ["aa1"])] == [1, 4]
    assert records.of_entries(store, []) == []
    assert records.of_entries(store, [""]) == []
