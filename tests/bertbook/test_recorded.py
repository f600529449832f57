"""What book/results holds is what the code here gives."""

import pytest

from bertbook.experiments import EXPERIMENTS, find_experiment
from bertbook.experiments.distributed import ALONE
from bertbook.experiments.recording import check_recorded


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_first_losses_and_stored_weights_give_what_is_recorded(name):
    assert check_recorded(find_experiment(name), ALONE) == []
