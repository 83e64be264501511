"""Inputs and targets that are cut rightly."""

import torch


def inputs_and_targets(tokens):
    return tokens[:, :-1], tokens[:, 1:]


def shifted(batch):
    return {"input_ids": batch[..., :-1].contiguous(), "labels": batch[..., 1:].contiguous()}


def get_batch(data, block_size, batch_size=4):
    starts = torch.randint(len(data) - block_size, (batch_size,))
    return tuple(torch.stack([data[i + ahead : i + ahead + block_size] for i in starts]) for ahead in (0, 1))
