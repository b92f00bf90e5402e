"""Readers with habits: the option that makes sed, jq, gzip, ps or rsync more than a reader."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    ("reads", "does_more"),
    [
        ("sed -n 1,5p x", "sed -i s/a/b/ x"),
        ("sed s/a/b/ x", "sed -i '' s/a/b/ x"),
        ("jq --arg a b .c x.json", "jq -n env"),
        ("yq eval .a x.yaml", "yq -i .a=1 x.yaml"),
        ("yq x.yaml", "yq 'load(\"x\")' x.yaml"),
        ("gzip -c x", "gzip x"),
        ("gzip -l x.gz", "gunzip x.gz"),
        ("unzip -l a.zip", "unzip a.zip"),
        ("7z l a.7z", "7z x a.7z"),
        ("7z l a.7z", "7z l a.7z -o/tmp"),
        ("ps aux", "ps auxe"),
        ("ps -ef", "ps eww"),
        ("fzf", "fzf --bind 'enter:execute(rm x)'"),
        ("fzf --bind ctrl-a:select-all", "fzf --bind=enter:become:sh"),
        ("rsync -n a/ b/", "rsync -a a/ b/"),
        ("rsync --list-only a/", "rsync -a a/ host:b"),
        ("rsync -n a/ b/", "rsync -n -e 'sh x' a b"),
        ("less +G x", "less '+!sh' x"),
        ("less +/word x", "less '+v' x"),
        ("xxd -ps x", "xxd -r a b"),
        ("sysctl -a", "sysctl a=1"),
    ],
)
def test_one_option_makes_a_reader_do_more(reads, does_more):
    assert judge(reads).category is Category.low
    assert judge(does_more).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "grep -f .env x",
        "grep x .env",
        "jq --slurpfile a .env . x.json",
        "jq --rawfile a .env . x.json",
        "gzip -c .env",
        "unzip -p x.zip; cat .env",
    ],
)
def test_every_file_a_reader_opens_counts(command):
    assert judge(command).category is Category.high


def test_files_that_merely_pass_by_do_not():
    for command in (
        "grep -f patterns.txt x",
        "grep .env README.md",
        "jq --arg a .env .b x.json",
        "jq '.env' x.json",
    ):
        assert judge(command).category is Category.low, command


def test_where_an_archive_is_unpacked_counts():
    assert judge("unzip a.zip").category is Category.medium
    assert judge("unzip a.zip -d /etc").category is Category.high


def test_rsync_that_deletes_is_a_delete():
    assert judge("rsync -a a/ b/").category is Category.medium
    assert judge("rsync -a --delete a/ b/").category is Category.high
    assert judge("rsync a/ host:b").category is Category.critical


def test_a_mode_that_looks_like_an_option_is_a_mode():
    assert judge("chmod -x f").category is Category.high


@pytest.mark.parametrize(
    ("reads", "does_more"),
    [
        ("dc -e '2 3 + p'", "dc -e '!rm x'"),
        ("echo '1 2 + p' | dc", "echo '!rm x' | dc"),
        ("dc -e '1 2 !<a'", "dc x.dc"),
        ("identify a.png", "identify ephemeral:a.png"),
        ("identify png:a.png", "identify -write b.png a.png"),
        ("exiftool -j a.jpg", "exiftool -p '${;system(1)}' a.jpg"),
        ("ast-grep -p 'f($A)' -r 'g($A)' src", "ast-grep -p 'f($A)' -r 'g($A)' -U src"),
        ("xsv stats a.csv", "xsv split out a.csv"),
        ("jsonlint a.json", "jsonlint -i a.json"),
        ("tldr tar", "tldr --update"),
    ],
)
def test_a_reader_that_can_do_more_is_told_from_one_that_reads(reads, does_more):
    assert judge(reads).category is Category.low
    assert judge(does_more).category > Category.low


def test_an_archive_printed_whole_may_hold_anything():
    assert judge("unzip -p a.zip").category is Category.medium
    assert judge("unzip -p a.zip README.md").category is Category.low
    assert judge("unzip -p a.zip .env").category is Category.high
    assert judge("unzip -l a.zip").category is Category.low


@pytest.mark.parametrize("command", ["sysctl -n kern.hv_vmm_present", "systemd-detect-virt", "dmidecode"])
def test_asking_who_watches_is_medium(command):
    assert judge(command).category is Category.medium


@pytest.mark.parametrize("command", ["rename -n 'system(1)' a", "rename -n 's/a/`id`/e' a"])
def test_renaming_by_code_runs_it(command):
    assert judge(command).category >= Category.medium


def test_renaming_by_a_pattern_can_be_tried_out():
    assert judge("rename -n 's/a/b/' *.txt").category is Category.low
