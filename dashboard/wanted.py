"""What would be trained next: from the view to a run's config, and from a config back to the view."""

from __future__ import annotations

from dataclasses import replace

from dashboard.settings import Settings
from transformer.config import TEXT, ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.presets import READING, Reader
from transformer.text import download, shelf

MOST_SYMBOLS, MOST_TOKENS = 64, 512
"""The longest question, and the longest window of a text, that the panel trains on."""
NO_TEXT = "there is no text to read yet: fetch the works of Shakespeare, or upload a text of your own"


def config_of(view: Settings) -> RunConfig:
    """What the training panel describes. Raises ConfigError with a sentence when it cannot be trained."""
    reads = view.task == TEXT
    text = text_of(view) if reads else ""
    if reads and not text:
        raise ConfigError(NO_TEXT)
    task = TaskConfig(task=view.task, length=view.length, min_length=view.min_length, symbols=view.symbols)
    training = TrainingConfig(
        seed=view.seed,
        device=view.device,
        max_steps=view.max_steps,
        learning_rate=view.learning_rate,
        batch_size=view.batch,
        teacher_forcing=view.teacher_forcing,
    )
    return RunConfig(
        task=replace(task, text=text, split=view.split, min_count=view.min_count) if reads else task,
        model=ModelConfig(
            architecture=view.architecture or "auto",
            positions=view.positions,
            mask=view.train_mask or "auto",
            n_layers=view.layers,
            n_heads=view.heads,
            d_model=view.width,
            d_ff=4 * view.width if view.feed_forward else 0,
            query_key_gain=view.gain,
            attention=view.attention,
            affine=view.affine,
            tied=reads,
        ),
        training=replace(training, **READING) if reads else training,
    )


def text_of(view: Settings) -> str:
    """The text that the view names, or Shakespeare, or else the first that is here; empty where there is none."""
    at_hand = shelf.keys()
    named = [key for key in at_hand if key.rpartition("-")[0] == download.NAME]
    return view.text if view.text in at_hand else next(iter((*named, *at_hand)), "")


def fields_of(config: RunConfig) -> dict[str, object]:
    """The fields of the training panel that describe a run; seed and device stay as they are, the number of steps
    unless a text is read, and so does what means nothing to its architecture."""
    return _fields(config.task, config.model, config.training, RunConfig(task=config.task).model.architecture)


def fields_of_reader(reader: Reader) -> dict[str, object]:
    """The same of a preset that reads Shakespeare, whether he is here or not."""
    return _fields(reader.task, reader.model, reader.training, reader.model.architecture)


def _fields(task: TaskConfig, model: ModelConfig, training: TrainingConfig, own: str) -> dict[str, object]:
    common: dict[str, object] = {
        "task": task.task,
        "length": task.length,
        "architecture": "" if model.architecture == own else model.architecture,
        "layers": model.n_layers,
        "width": model.d_model,
        "learning_rate": training.learning_rate,
        "batch": training.batch_size,
    }
    common |= {name: getattr(task, name) for name in ("min_length", "symbols", "text", "split", "min_count")}
    if task.task == TEXT:  # its rate falls to nothing at the last step, so their number belongs to it
        common["max_steps"] = training.max_steps
    if model.recurrent:
        helped = training.teacher_forcing
        return {**common, "attention": model.attention, "affine": model.affine, "teacher_forcing": helped}
    return {
        **common,
        "positions": model.positions,
        "train_mask": "" if model.mask == _own_mask(model.architecture) else model.mask,
        "heads": model.n_heads,
        "feed_forward": model.d_ff > 0,
        "gain": model.query_key_gain,
    }


def _own_mask(architecture: str) -> str:
    """The mask that an architecture has unless another is named."""
    return "full" if architecture == "encoder" else "causal"
