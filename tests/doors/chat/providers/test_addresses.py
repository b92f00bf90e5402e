import pytest

from checkrein.doors.chat.providers.addresses import address
from checkrein.settings.providers import ProviderSpec


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("openai", "", "https://api.openai.com/v1"),
        ("openai", "https://h", "https://h/v1"),
        ("openai", "https://h/v1/", "https://h/v1"),
        ("compatible", "http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        ("compatible", "http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
        ("compatible", "https://h/v1/chat/completions", "https://h/v1"),
        ("compatible", "https://h/api", "https://h/api/v1"),
        ("compatible", "https://h/v1beta/openai/", "https://h/v1beta/openai"),
        ("compatible", "https://v1.example", "https://v1.example/v1"),
        ("anthropic", "", "https://api.anthropic.com"),
        ("anthropic", "https://h/v1/messages", "https://h"),
        ("anthropic", "https://h/proxy/v1", "https://h/proxy"),
        ("google", "", "https://generativelanguage.googleapis.com"),
        ("google", "https://h/v1beta", "https://h"),
        ("azure", "https://r.openai.azure.com/openai/deployments/x", "https://r.openai.azure.com"),
        ("azure", "https://r.openai.azure.com/", "https://r.openai.azure.com"),
    ],
)
def test_an_address_has_its_version_once_or_leaves_it_to_the_library(kind, given, wanted):
    assert address(ProviderSpec(name="p", kind=kind, base_url=given)) == wanted
