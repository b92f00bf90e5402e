from checkrein.console.views.health import in_force
from checkrein.settings import Settings, documented_keys
from patience import until


def test_every_setting_is_shown_with_its_meaning(visitor, user_settings):
    user_settings("[trust]\nhibernation_days = 7\n")
    text = visitor.get("/health").text
    for key in documented_keys():
        assert "NAME" in key or key in text
    assert text.count(">changed<") == 1


def test_addresses_with_secrets_are_not_shown():
    from msgspec.structs import replace

    settings = Settings()
    if not hasattr(settings, "notify"):
        return
    settings = replace(settings, notify=replace(settings.notify, urls=("tgram://secret/chat",)))
    assert "secret/chat" not in str(in_force(settings))
    settings = replace(settings, connections=replace(settings.connections, proxy_url="http://a:secret@b"))
    assert "secret@b" not in str(in_force(settings))
    assert "1 set, not shown here" in str(in_force(settings))


def test_the_whole_record_is_verified_on_request(visitor, work):
    work(3)
    visitor.post("/health/verify")
    until(lambda: not visitor.console.desk.check.is_running)
    text = visitor.get("/health").text
    assert "checkpoints verify" in text
    assert "verifies" in visitor.get("/calls").text


def test_what_was_tried_and_refused_is_shown(visitor):
    assert "Tried and refused" not in visitor.get("/health").text
    visitor.post("/health/verify", {"csrf": "forged"})
    text = visitor.get("/health").text
    assert "Tried and refused" in text
    assert "without the token of its session" in text


def test_a_passphrase_is_set_twice_the_same(visitor):
    assert visitor.post("/health/passphrase", {"new": "long enough", "again": "other"}).status == 400
    assert visitor.post("/health/passphrase", {"new": "short", "again": "short"}).status == 400
    assert visitor.post("/health/passphrase", {"new": "long enough", "again": "long enough"}).status == 303
    assert "Present one" in visitor.get("/health").text


def test_a_broken_settings_file_is_said(visitor, user_settings):
    user_settings("[nonsense]\n")
    answer = visitor.get("/health")
    assert answer.status == 200
    assert "Every call is refused" in answer.text
