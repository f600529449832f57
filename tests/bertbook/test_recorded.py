"""What book/results holds is what the code here gives. What it does not hold, no chapter can load."""

import pytest

from bertbook.experiments import EXPERIMENTS, find_experiment
from bertbook.experiments.distributed import ALONE
from bertbook.experiments.recording import check_recorded
from bertbook.experiments.results import RESULTS

RECORDED = [name for name in EXPERIMENTS if (RESULTS / f"{name}.json").exists()]


@pytest.mark.parametrize("name", RECORDED)
def test_first_losses_and_stored_weights_give_what_is_recorded(name):
    assert check_recorded(find_experiment(name), ALONE) == []
