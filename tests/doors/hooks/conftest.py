"""What the tests of the hook door stand on."""

import pytest

from checkrein.authority.phase import switch
from doors.hooks.agent import Agent


@pytest.fixture
def agent(pipeline, project):
    made = Agent(pipeline, project)
    switch(pipeline, "building", "ada", "test", project=project)
    return made
