"""What the driver reports while something is timed."""

import pynvml

from pytorch_to_triton.hardware.conditions import throttle_reasons


def test_all_reasons_to_clock_down_that_hold_at_once_are_named() -> None:
    power, heat = pynvml.nvmlClocksEventReasonSwPowerCap, pynvml.nvmlClocksEventReasonHwThermalSlowdown
    assert throttle_reasons(pynvml, power) == ["SwPowerCap"]
    assert set(throttle_reasons(pynvml, power | heat)) == {"SwPowerCap", "HwThermalSlowdown"}
    assert throttle_reasons(pynvml, 0) == []
