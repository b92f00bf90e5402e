"""The machine's own tools: the flag that shows, and the flag that changes."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    ("shows", "changes"),
    [
        ("crontab -l", "crontab -r"),
        ("crontab -l", "crontab x"),
        ("crontab -l -u dev", "crontab -l -e"),
        ("ip addr", "ip addr add 10.0.0.1/8 dev eth0"),
        ("ip -4 addr show", "ip link set eth0 down"),
        ("ip route list", "ip -batch x"),
        ("service nginx status", "service nginx restart"),
        ("pacman -Qi x", "pacman -S x"),
        ("pacman -Ss x", "pacman -Syu"),
        ("sysctl -a", "sysctl -w a=1"),
        ("sysctl kernel.hostname", "sysctl kernel.hostname=x"),
        ("mount", "mount /dev/sda1 /mnt"),
        ("hostname", "hostname evil"),
        ("date", "date -s x"),
        ("plutil -p a.plist", "plutil -convert xml1 a.plist"),
        ("plutil -convert json -o - a.plist", "plutil -convert json -o b.json a.plist"),
        ("plutil -extract a raw a.plist", "plutil -replace a -string x a.plist"),
        ("dscl . -read /Users/x", "dscl . -delete /Users/x"),
        ("networksetup -listallhardwareports", "networksetup -setdnsservers Wi-Fi x"),
        ("scutil --dns", "scutil --nc stop x"),
        ("git symbolic-ref HEAD", "git symbolic-ref HEAD refs/heads/x"),
    ],
)
def test_a_flag_decides_between_showing_and_changing(shows, changes):
    assert judge(shows).category is Category.low
    assert judge(changes).category > Category.low


def test_a_session_that_waits_for_commands_is_never_low():
    assert judge("scutil").category > Category.low


def test_throwing_changes_away_is_worse_than_switching():
    assert judge("git checkout main").category is Category.medium
    assert judge("git checkout -- a.py").category is Category.high
    assert judge("git checkout .").category is Category.high


@pytest.mark.parametrize(
    ("looks", "changes"),
    [
        ("service nginx status", "service nginx stop status"),
        ("route -n", "route -n add default gw 10.0.0.1"),
        ("arp -a", "nft -a flush ruleset"),
        ("ip a s", "ip link s eth0 down"),
        ("kill -l", "kill 4242 -l"),
        ("kill -l 9", "pkill -l -f x"),
        ("date +%s", "date 010100002030"),
        ("hostname -I", "hostname -F names"),
        ("journalctl -n1", "journalctl -n1 --cursor-file=x"),
        ("apt-file search x", "apt-file update"),
        ("kubectx", "kubectx prod"),
        ("gum style hello", "gum spin -- rm -rf x"),
    ],
)
def test_a_verb_that_changes_counts_wherever_it_stands(looks, changes):
    assert judge(looks).category is Category.low
    assert judge(changes).category > Category.low


@pytest.mark.parametrize(
    "command",
    ["iptables-restore < rules", "cat rules | iptables-restore -n", "dhclient", "ssh-keygen", "trash-empty"],
)
def test_what_acts_without_operands_or_on_its_input_is_no_listing(command):
    assert judge(command).category >= Category.medium


def test_private_networks_are_not_looked_at_unasked():
    assert judge("scutil --nc list").category is Category.medium
