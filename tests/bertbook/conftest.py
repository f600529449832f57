"""What the tests of several drawings need."""

import matplotlib
import matplotlib.pyplot as plt
import pytest


@pytest.fixture
def nothing_left_behind():
    """No figure stays open (a notebook would show it twice), and no setting of pyplot changes."""
    before = dict(matplotlib.rcParams)
    yield
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before
