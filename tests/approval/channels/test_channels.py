from checkrein.approval.channels import Notice, Undelivered


def test_a_notice_is_words_and_data():
    assert Notice("asked", "t", "b").facts == {}


def test_what_did_not_arrive_says_whether_to_try_again():
    assert str(Undelivered("gone", lasting=True)) == "gone"
    assert not Undelivered("busy").lasting
