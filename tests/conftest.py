"""What every test shares: shapes checked by a machine, one torch thread, and how `hypothesis` looks for examples."""

from jaxtyping import install_import_hook

# Before anything imports transformer. The numeric tower: an int is welcome where a float is asked for (PEP 484).
install_import_hook("transformer", "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")

import hypothesis  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)
hypothesis.settings.register_profile("small", max_examples=25, deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("small")
