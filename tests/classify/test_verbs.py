import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    "command",
    [
        "gh pr view 5",
        "gh issue list",
        "kubectl get pods -n web",
        "aws s3 ls",
        "docker ps -a",
        "az vm list",
        "helm list",
    ],
)
def test_a_reading_verb_is_low_and_of_the_network(command):
    risk = judge(command)
    assert (risk.category, risk.domains) == (Category.low, ("network",))


@pytest.mark.parametrize(
    "command",
    [
        "gh pr merge 5",
        "kubectl delete pod x",
        "aws ec2 terminate-instances --instance-ids i-1",
        "docker rm x",
        "docker rm help",
    ],
)
def test_a_changing_verb_is_high(command):
    assert judge(command).category >= Category.high


@pytest.mark.parametrize(
    "command",
    [
        "kubectl get secret x -o yaml",
        "kubectl get all,secrets -o yaml",
        "kubectl get secrets.v1. -o yaml",
        "oc get secret x -o yaml",
        "az storage account keys list -n x",
        "aws ssm get-parameter-history --name x --with-decryption",
        "aws lightsail get-instance-access-details --instance-name x",
        "doctl kubernetes cluster kubeconfig show x",
        "auth0 apps show x --reveal-secrets",
    ],
)
def test_whoever_shows_secrets_is_never_low(command):
    assert judge(command).category > Category.low


def test_a_dry_run_that_is_taken_back_is_no_dry_run():
    assert judge("kubectl apply -f x.yaml --dry-run=client").category is Category.low
    assert judge("kubectl apply -f x.yaml --dry-run=client --dry-run=none").category >= Category.high


def test_a_thing_that_is_called_like_a_verb_has_its_verb_behind_it():
    assert judge("auth0 logs streams create").category is Category.high
    assert judge("auth0 logs list").category is Category.low
