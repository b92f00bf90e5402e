"""What cannot exist at a door, and why: the suite holds every driver to exactly this table."""

_NO_PHASE = "every call is judged in the building phase"
_NO_PROFILE = "calls belong to no profile"
_NO_DEFINITION = "callers bring no definition of the tool"
_NO_PROJECT = "a client that names no root has no project's folder"
_ENDED = "a hook that was answered has ended"
_CHANGED = "a_tool_that_changed_after_the_yes_is_not_called"
_ANEW = "a_tool_that_changed_and_was_accepted_anew_needs_a_new_yes"
_GONE = "a_tool_that_is_gone_after_the_yes_is_not_called"
_PHASE = "a_phase_that_refuses_the_call_after_the_yes_outranks_it"
_PROFILE = "a_profile_that_refuses_the_call_after_the_yes_outranks_it"
_PROJECT = "a_deny_in_the_projects_file_after_the_yes_outranks_it"
_NOBODY = "a_call_nobody_can_be_asked_about_is_over"
_ONE = "a conversation goes on when its last answer is over"
_CONVERSATION = {
    "one_yes_settles_the_same_call_that_was_asked_about_twice": _ONE,
    "an_edit_speaks_for_one_call_only": _ONE,
    _PHASE: _NO_PHASE,
    _PROFILE: _NO_PROFILE,
    _NOBODY: "a conversation's question waits until it is answered",
    "a_second_question_beyond_the_limit_is_refused": _ONE,
    "a_client_that_ends_takes_its_question_back": "a conversation has no client that could end",
}
CANNOT = {
    "hooks": {
        _CHANGED: _NO_DEFINITION,
        _ANEW: _NO_DEFINITION,
        _GONE: _NO_DEFINITION,
        _PROFILE: _NO_PROFILE,
        "an_edit_that_does_not_fit_the_tool_is_not_sent_to_it": "the agent knows what fits its tools",
        "a_caller_that_comes_back_twice_runs_once": _ENDED,
        "a_caller_that_comes_back_twice_at_once_runs_once": _ENDED,
        "a_deny_and_the_same_request_while_the_tool_runs_change_nothing": _ENDED,
        "killed_with_the_claim_on_the_record_nothing_runs_any_more": (
            "the agent runs the tool, so nobody takes the approval"
        ),
    },
    "gateway": {_PHASE: _NO_PHASE, _PROFILE: _NO_PROFILE, _PROJECT: _NO_PROJECT},
    "eval": {
        _PHASE: _NO_PHASE,
        _PROJECT: _NO_PROJECT,
        _ANEW: "a script goes on as soon as its server is up, before anybody accepts the tool",
        "a_call_its_agent_takes_back_runs_nothing": "a script outlives the request it came with",
        "a_client_that_ends_takes_its_question_back": "a script outlives the client it came from",
    },
    "chat": _CONVERSATION,
    "api": _CONVERSATION,
    "library": {
        _CHANGED: _NO_DEFINITION,
        _ANEW: _NO_DEFINITION,
        _GONE: _NO_DEFINITION,
        _PROFILE: _NO_PROFILE,
        _PHASE: "a call that waits keeps the phase it was made in",
        _NOBODY: "a program's question waits until it is answered",
    },
}
