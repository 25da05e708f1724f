"""What a client got: is it whole, is it the right tone, is it more than silence."""

import io

import av
import numpy as np

from . import texts

ENGINE_RATE = 24_000
# Softer than this is silence: 60 dB below full scale. The stub's tones and the nano voice are far above.
SILENCE_RMS = 1e-3
# MP3 and Opus pad with up to a few frames of their own, at both ends together; 24 kHz MP3 has frames of 24 ms.
CODEC_PAD_S = 0.15
# A resampler may round at its end.
ROUNDING_S = 1e-3
# A tone of the stub lies on a grid of 25 Hz: half of that tells two apart.
TONE_TOLERANCE_HZ = 12.5
# Sound of the stub for each character, and the share of it that is made at most of a turn that is broken off.
STUB_S_PER_CHAR = 0.02
BROKEN_OFF_SHARE = 0.8
# The tones that tell contexts apart, below those that tell chunks apart.
CONTEXT_BAND_HZ = (390.0, 2_900.0)


def from_s16le(data: bytes) -> np.ndarray:
    """Samples of raw PCM, which has a whole number of them."""
    assert len(data) % 2 == 0, f"{len(data)} bytes are no whole number of samples"
    return np.frombuffer(data, "<i2").astype(np.float32) / 32_768


def from_file(data: bytes) -> tuple[np.ndarray, int]:
    """Samples and rate of a file in any format that players know; its first channel."""
    with av.open(io.BytesIO(data)) as file:
        (stream,) = file.streams.audio
        to_float = av.AudioResampler(format="fltp")
        frames = [out for frame in file.decode(stream) for out in to_float.resample(frame)]
        return np.concatenate([frame.to_ndarray()[0] for frame in frames]), stream.rate


def is_silent(samples: np.ndarray) -> bool:
    return len(samples) == 0 or float(np.sqrt(np.mean(samples**2))) < SILENCE_RMS


def loudest_tone(samples: np.ndarray, rate: int) -> float:
    """Frequency in Hz of the strongest tone among those that tell contexts apart."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    hertz = np.fft.rfftfreq(len(samples), 1 / rate)
    band = (hertz >= CONTEXT_BAND_HZ[0]) & (hertz <= CONTEXT_BAND_HZ[1])
    return float(hertz[band][np.argmax(spectrum[band])])


def check_contexts(samples: np.ndarray, rate: int, contexts: list[dict], pad_s: float = 0) -> None:
    """Demands that this is all that these contexts said, each at its pitch; `pad_s` is what a codec may add to each."""
    expected_s = [context["samples"] / ENGINE_RATE for context in contexts]
    got_s = len(samples) / rate
    assert contexts and min(expected_s) > 0, "a context said nothing"
    slack_s = len(contexts) * ROUNDING_S
    assert -slack_s <= got_s - sum(expected_s) <= slack_s + len(contexts) * pad_s, (
        f"{got_s:.3f} s of {sum(expected_s):.3f} s"
    )
    assert not is_silent(samples), "silence"
    at_s = 0.0
    for context, length_s in zip(contexts, expected_s, strict=True):
        part = samples[int(at_s * rate) : int((at_s + length_s) * rate)]
        tone = loudest_tone(part, rate)
        wanted = context["context_hz"]
        assert abs(tone - wanted) < TONE_TOLERANCE_HZ, f"{tone:.0f} Hz instead of {wanted:.0f} Hz at {at_s:.2f} s"
        # What a codec adds moves the next one; most of each part is its own all the same.
        at_s += length_s + (got_s - sum(expected_s)) / len(contexts)


def check_said(contexts: list[dict], text: str) -> None:
    """Demands that these contexts were told this text, word for word."""
    told = " ".join(chunk["text"] for context in contexts for chunk in context["chunks"])
    assert texts.words(told) == texts.words(text), f"told: {told}"


def check_broken_off(contexts: list[dict], text: str) -> None:
    """Demands that these contexts were stopped before they had said this text."""
    spoken_s = sum(context["samples"] for context in contexts) / ENGINE_RATE
    assert spoken_s < BROKEN_OFF_SHARE * len(text) * STUB_S_PER_CHAR, f"{spoken_s:.1f} s were made: nothing was stopped"
