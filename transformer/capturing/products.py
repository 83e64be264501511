"""Products of two tensors as PyTorch is asked for them: which axes they share, sum over, and keep.

`a @ b`, `torch.bmm`, `torch.einsum`, `functional.linear`, and a product that is summed, are one thing: letters of two
operands and of a result, as in einsum's "bhqk,bhkd->bhqd".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Letters = tuple[int, ...]
Call = Callable[..., Tensor]
"""Called with a function and what it is given."""
ALONE = -1
"""In place of a letter: this axis has one place only, and is spread over the other operand's."""


@dataclass(frozen=True)
class Product:
    """Two tensors that are multiplied, the letters of their axes, and the letters of the result's."""

    operands: tuple[Tensor, Tensor]
    letters: tuple[Letters, Letters]
    result: Letters

    def summed_letters(self, one: int) -> Letters:
        """The letters of an operand that are summed over and that the other has too."""
        other = self.letters[1 - one]
        return tuple(each for each in self.letters[one] if each != ALONE and each in other and each not in self.result)

    def summed_axes(self, one: int) -> list[int]:
        """The axes of an operand that are summed over."""
        letters = self.summed_letters(one)
        return [axis for axis, letter in enumerate(self.letters[one]) if letter in letters]


def product(function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Product | None:
    """The product that a call of one of PyTorch's functions computes; None where it is none of two tensors."""
    if function in MATMULS:
        one, other = (*args, *named.values())[:2]
        if function is Tensor.__rmatmul__:
            one, other = other, one
        return _matmul(one, other) if isinstance(one, Tensor) and isinstance(other, Tensor) else None
    if function is functional.linear:
        x, weight = (*args, *named.values())[:2]
        axes = tuple(range(x.dim()))
        return (
            Product((x, weight), (axes, (x.dim(), x.dim() - 1)), (*axes[:-1], x.dim())) if weight.dim() == 2 else None
        )
    if function is torch.inner:
        one, other = (*args, *named.values())[:2]
        first, second = (tuple(range(each.dim() - 1)) for each in (one, other))
        second = tuple(each + len(first) for each in second)
        inner = len(first) + len(second)
        return Product((one, other), ((*first, inner), (*second, inner)), (*first, *second))
    if function is torch.tensordot:
        return _tensordot(*args, **named)
    if function in ADDS_TO_MATMUL and len(args) == 3:
        return _matmul(args[1], args[2])
    if function is torch.einsum and args and isinstance(args[0], str):
        return _einsum(args[0], args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:])
    return None


def take_apart(
    function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], first: Tensor, call: Call
) -> Tensor | None:
    """The result of a product that adds something, or has more than two operands, made by `call` of simpler functions.

    `first` is the operand that the others are multiplied with one after the other. The result is the same to rounding.
    None where the function is no such product, or is asked in a way that is not read.
    """
    name = getattr(function, "__name__", "")
    tensors = [*args, *(each for key, each in named.items() if isinstance(each, Tensor) and key != "out")]
    if name.removesuffix("_") in ADDED_TO and len(tensors) == 3:
        added, one, other = tensors
        result = call(torch.matmul, one, other)
        if name.startswith("addbmm"):
            result = call(torch.sum, result, 0)
        if named.get("alpha", 1) != 1:
            result = call(torch.mul, result, named["alpha"])
        if named.get("beta", 1) != 0:
            result = call(torch.add, result, added, alpha=named.get("beta", 1))
        into = added if name.endswith("_") else named.get("out")
        return result if into is None else call(Tensor.copy_, into, result)
    if name in ("multi_dot", "linalg_multi_dot", "chain_matmul"):
        operands = args[0] if isinstance(args[0], list | tuple) else args
        result = operands[0]
        for each in operands[1:]:
            result = call(torch.matmul, result, each)
        return result
    if function is torch.einsum and args and isinstance(args[0], str):
        operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
        return _one_after_the_other(args[0].replace(" ", ""), list(operands), first, call)
    return None


def _one_after_the_other(equation: str, operands: list[Any], first: Tensor, call: Call) -> Tensor | None:
    """An einsum of three operands or more: `first` by the one that it is summed with, then the next; of one, turned."""
    left, arrow, wanted = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        wanted = "..." * ("..." in left) + "".join(
            sorted(each for each in set(left) - {",", "."} if left.count(each) == 1)
        )
    if len(operands) == 1:
        turned = sorted(wanted) == sorted(left) and len(set(left)) == len(left) and "." not in left
        return call(Tensor.permute, operands[0], [left.index(each) for each in wanted]) if turned else None
    if len(operands) == 2:
        return None
    at = next(number for number, each in enumerate(operands) if each is first)
    term, result = terms.pop(at), operands.pop(at)
    while terms:
        shared = [
            any(
                letter in other and letter not in "." + wanted + "".join(terms[:one] + terms[one + 1 :])
                for letter in term
            )
            for one, other in enumerate(terms)
        ]
        one = shared.index(True) if True in shared else 0
        other, operand = terms.pop(one), operands.pop(one)
        left_over = wanted + "".join(terms)
        kept = "".join(each for each in dict.fromkeys(term + other) if each != "." and each in left_over)
        into = wanted if not terms else "..." * ("..." in term + other) + kept
        result = call(torch.einsum, f"{term},{other}->{into}", result, operand)
        term = into
    return result


def spread(one: Tensor, other: Tensor) -> tuple[Letters, Letters, Letters]:
    """The letters of two tensors that are multiplied place by place, and of what comes out."""
    many = max(one.dim(), other.dim())
    result = tuple(range(many))

    def of(tensor: Tensor, against: Tensor) -> Letters:
        places = range(many - tensor.dim(), many)
        sizes = dict(zip(range(many - against.dim(), many), against.shape, strict=True))
        alone = (size == 1 and sizes.get(place, 1) > 1 for place, size in zip(places, tensor.shape, strict=True))
        return tuple(ALONE if each else place for place, each in zip(places, alone, strict=True))

    return of(one, other), of(other, one), result


def arrange_axes(tensor: Tensor, letters: Letters, wanted: Letters, sizes: Mapping[int, int]) -> Tensor:
    """A tensor with its axes in this order; it is spread over those that it has not."""
    for axis in reversed([axis for axis, letter in enumerate(letters) if letter == ALONE]):
        tensor = tensor.select(axis, 0)
    own = [letter for letter in letters if letter != ALONE]
    tensor = tensor.permute([own.index(letter) for letter in wanted if letter in own])
    for axis, letter in enumerate(wanted):
        if letter not in own:
            tensor = tensor.unsqueeze(axis)
    return tensor.expand([sizes[letter] for letter in wanted])


def _matmul(one: Tensor, other: Tensor) -> Product:
    in_front = [tensor[(...,) + (0,) * min(2, tensor.dim())] for tensor in (one, other)]  # views of what stands before
    first, second, result = spread(in_front[0], in_front[1])
    row, inner, column = (len(result) + each for each in range(3))
    left = (*first, row, inner) if one.dim() > 1 else (inner,)
    right = (*second, inner, column) if other.dim() > 1 else (inner,)
    kept = (row,) * (one.dim() > 1) + (column,) * (other.dim() > 1)
    return Product((one, other), (left, right), (*result, *kept))


def _tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Product | None:
    if isinstance(dims, int):
        dims = (range(a.dim() - dims, a.dim()), range(dims))
    elif not isinstance(dims, list | tuple) or len(dims) != 2:
        return None
    pairs = {right % b.dim(): left % a.dim() for left, right in zip(*dims, strict=True)}
    first = tuple(range(a.dim()))
    second = tuple(pairs.get(axis, a.dim() + axis) for axis in range(b.dim()))
    kept = (*(each for each in first if each not in pairs.values()), *(each for each in second if each >= a.dim()))
    return Product((a, b), (first, second), kept)


def _einsum(equation: str, operands: Sequence[Any]) -> Product | None:
    if len(operands) != 2 or not all(isinstance(each, Tensor) for each in operands):
        return None
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    rest = [each.dim() - len(term.replace("...", "")) for each, term in zip(operands, terms, strict=True)]
    fitted = max((many for many, term in zip(rest, terms, strict=True) if "..." in term), default=0)
    numbers = {letter: number for number, letter in enumerate(dict.fromkeys(left.replace("...", "").replace(",", "")))}
    dots = tuple(range(len(numbers), len(numbers) + fitted))

    def read(term: str, many: int, tensor: Tensor | None) -> Letters:
        front, ellipsis, back = term.partition("...")
        middle = dots[fitted - many :] if ellipsis else ()
        letters = (*(numbers[each] for each in front), *middle, *(numbers[each] for each in back))
        if tensor is None:
            return letters
        sizes = zip(letters, tensor.shape, strict=True)
        return tuple(ALONE if size == 1 and widest[letter] > 1 else letter for letter, size in sizes)

    widest: dict[int, int] = {}
    for term, many, tensor in zip(terms, rest, operands, strict=True):
        for letter, size in zip(read(term, many, None), tensor.shape, strict=True):
            widest[letter] = max(size, widest.get(letter, 1))
    once = sorted(each for each in numbers if left.count(each) == 1)
    right = right if arrow else ("..." if fitted else "") + "".join(once)
    given = tuple(read(term, many, each) for term, many, each in zip(terms, rest, operands, strict=True))
    return Product((operands[0], operands[1]), (given[0], given[1]), read(right, fitted, None))


MATMULS = frozenset({
    torch.matmul, torch.bmm, torch.mm, torch.mv,
    Tensor.matmul, Tensor.bmm, Tensor.mm, Tensor.mv, Tensor.__matmul__, Tensor.__rmatmul__,
})  # fmt: skip
ADDED_TO = frozenset({"baddbmm", "addbmm", "addmm", "addmv"})
"""Functions that add a product to what they are given first."""
ADDS_TO_MATMUL = frozenset({
    torch.baddbmm, torch.addmm, torch.addmv, Tensor.baddbmm, Tensor.addmm, Tensor.addmv,
})  # fmt: skip
"""Of these the ones that sum over nothing but what a matrix product sums over."""
