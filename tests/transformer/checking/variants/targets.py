"""Inputs and targets that are cut rightly."""


def inputs_and_targets(tokens):
    return tokens[:, :-1], tokens[:, 1:]


def shifted(batch):
    return {"input_ids": batch[..., :-1].contiguous(), "labels": batch[..., 1:].contiguous()}
