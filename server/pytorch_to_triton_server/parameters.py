"""Parameters that several tools share, with the help that both faces show."""

from typing import Annotated, Any

from pydantic import Field

from pytorch_to_triton_server.names import DeviceChoice

Texts = tuple[str, ...]
Target = Annotated[
    str,
    Field(
        description="path.py:name of a function or nn.Module; path.py: its only function, or a kernel file"
    ),
]
Pure = Annotated[bool, Field(description="Draft a kernel even where a library (cuDNN, cuBLAS) may be faster")]
Kernel = Annotated[str, Field(description="path.py of a kernel file, or path.py:name")]
Reference = Annotated[
    str | None, Field(description="What to compare with: path.py:name; default: the kernel file's own")
]
Inputs = Annotated[
    Texts, Field(description="An input: x=float32[M,N], eps=1e-5 or mode=silu|gelu; overrides the file's")
]
Dims = Annotated[Texts, Field(description="A dimension's sizes: M=1,7,256; overrides the file's")]
At = Annotated[Texts, Field(description="A set of sizes to tune and time at: M=8192,N=4096")]
Requirements = Annotated[Texts, Field(description="A condition on the sizes: 'D % 2 == 0'")]
Compare = Annotated[Texts, Field(description="Free order of results: unordered(out[0], out[1], dim=-1)")]
Init = Annotated[Texts, Field(description="A module's constructor argument: dim=512")]
Example = Annotated[
    str | None, Field(description="path.py:name of a function whose calls to the target give the inputs")
]
Against = Annotated[Texts, Field(description="Another implementation to time: path.py:name or a kernel file")]
Archs = Annotated[Texts, Field(description="A GPU to compile for; default: sm_90 and gfx942")]
Device = Annotated[DeviceChoice, Field(description="auto: the GPU, or without one Triton's interpreter")]
Seed = Annotated[int | None, Field(ge=0, lt=2**48, description="To generate the same inputs again")]
_SECONDS: dict[str, Any] = {"gt": 0, "le": 7 * 86400, "allow_inf_nan": False}
Timeout = Annotated[float, Field(description="Seconds allowed for one import, trace or call", **_SECONDS)]
TuneSeconds = Annotated[
    float | None, Field(description="Seconds per size to search for configurations", **_SECONDS)
]
Python = Annotated[
    str | None,
    Field(description="Another Python that has torch and triton, or a release such as triton==3.6.0"),
]
Force = Annotated[bool, Field(description="Overwrite files that this tool did not write")]
Thorough = Annotated[bool, Field(description="On a GPU, also run small cases under compute-sanitizer")]
