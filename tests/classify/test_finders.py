"""Commands that look for files by name, and what is done with what they find."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    ("command", "low"),
    [
        ("find . -delete", False),
        ("find . -name '*.pem' -exec cat {} +", False),
        ("find . -name '*.md' -exec cat {} +", True),
        ("find / -name id_rsa", False),
        ("find . -name id_rsa.pub", True),
        ("find . -fprint out", False),
        ("find ~/.ssh -type f", False),
        ("fd x -x rm", False),
        ("fd -e py --exec=rm", False),
        ("ls | xargs -I{} sh -c '{}'", False),
        ("echo .env | xargs cat", False),
        ("echo a.txt | xargs cat", True),
        ("cat list | xargs rm", False),
    ],
)
def test_names_that_are_found_are_judged_by_what_they_could_be(command, low):
    assert (judge(command).category is Category.low) == low


@pytest.mark.parametrize(
    ("command", "low"),
    [
        ("find . -iname .ENV -exec cat {} +", False),
        ("find . -regex '.*env' -exec cat {} \\;", False),
        ("find . -name '.en*' -exec cat {} +", False),
        ("find . -name x -o -name .env -exec cat {} +", False),
        ("find . -maxdepth 1 -name '.*' -type f -exec head {} +", False),
        ("fd . ~/.ssh -x cat", False),
        ("fd -e pem -x cat", False),
        ("fd -e pem | xargs cat", False),
        ("ls -A | grep env | xargs cat", False),
        ("git ls-files | grep -i '\\.pem$' | xargs head -1", False),
        ("grep -rl PRIVATE . | xargs cat", False),
        ("find . -name '*secret*' | xargs cat", False),
        ("find . -name '*.py' -exec wc -l {} +", True),
        ("find . -not -name .env -name '*.md' -exec cat {} +", True),
        ("find . -name '.env*' -exec ls -l {} +", True),
        ("fd -e py -x wc -l", True),
        ("git ls-files | grep environment | xargs wc -l", True),
        ("git ls-files | grep -v env | xargs wc -l", True),
        ("grep -rl private src | xargs wc -l", True),
    ],
)
def test_names_of_secrets_that_are_fed_to_a_reader_are_secrets_read(command, low):
    assert (judge(command).category is Category.low) == low
