"""What several tests of the documentation look at."""

from __future__ import annotations

import pytest

from groupgt.experiment.outcome import Outcome
from tests.docs import rechunked


@pytest.fixture(scope="session")
def three_chunkings(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What `configs/rechunk.yaml` gives."""
    return rechunked.run(tmp_path_factory.mktemp("chunkings"))
