"""Short-time Fourier transforms of complex signals, and their inverses in steps."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from .complex_numbers import multiplied_out


def stft(
    input: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> torch.Tensor:
    """Return the transform; it is linear in the signal and in the window."""
    lengths = (n_fft, hop_length, win_length)
    ways: dict[str, Any] = {"center": center, "pad_mode": pad_mode, "normalized": normalized}
    if align_to_window is not None:
        ways["align_to_window"] = align_to_window
    operands = [x for x in (input, window) if x is not None]
    if onesided or not any(x.is_complex() for x in operands):
        return torch.stft(
            input, *lengths, window, onesided=onesided, return_complex=return_complex, **ways
        )

    def pairs(signal: torch.Tensor, own: torch.Tensor | None = None) -> torch.Tensor:
        made = torch.stft(signal, *lengths, own, onesided=False, return_complex=True, **ways)
        return torch.view_as_real(made)

    (a, b), (c, d) = (one.unbind(-1) for one in multiplied_out(pairs, operands))
    found = torch.complex(a - d, b + c)
    return torch.view_as_real(found) if return_complex is False else found


def istft(
    input: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> torch.Tensor:
    """Return the real signal: the sum of the frames, divided by that of the squared windows."""
    hop, size = hop_length or n_fft // 4, win_length or n_fft
    held = torch.ones(size, dtype=input.real.dtype) if window is None else window
    first = (n_fft - size) // 2
    held = functional.pad(held, (first, n_fft - size - first))
    whole = input.shape[-2] == n_fft if onesided is None else not onesided
    norm, columns = "ortho" if normalized else "backward", input.transpose(-1, -2)
    made = torch.fft.ifft(columns, norm=norm).real if whole else None
    frames = torch.fft.irfft(columns, n_fft, norm=norm) if made is None else made
    total = n_fft + hop * (frames.shape[-2] - 1)

    def joined(rows: torch.Tensor) -> torch.Tensor:
        flat = rows.reshape(-1, *rows.shape[-2:]).transpose(1, 2)
        found = functional.fold(flat, (1, total), (1, n_fft), stride=(1, hop))
        return found.reshape(*rows.shape[:-2], total)

    start = n_fft // 2 if center else 0
    end = total - start if length is None else min(total, start + length)
    found = joined(frames * held)[..., start:end]
    found = found / joined((held * held).expand(frames.shape[-2:]))[start:end]
    return found if length is None else functional.pad(found, (0, length - end + start))
