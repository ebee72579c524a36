"""Why a target cannot be used: messages for the user, by errors that the tools know by name."""


class TargetError(Exception):
    """The user's target cannot be used; the message is for the user."""


class TargetMissing(TargetError):
    """There is no such file."""


class NameMissing(TargetError):
    """The file has no such name; the nearest ones are listed."""


class ReferenceMissing(NameMissing):
    """Nothing in the file is to be compared with."""


class TargetSyntax(TargetError):
    """The file is not valid Python: file, line and caret."""


class TargetLoadFailed(TargetError):
    """Importing the file, or constructing the module in it, raised."""


class TargetExits(TargetError):
    """The file ends the program while it is imported."""


class ModuleUnconstructed(TargetError):
    """The module cannot be constructed with the arguments that it gets."""


class NotCallable(TargetError):
    """The name is neither a function nor an nn.Module."""


class ArityMismatch(TargetError):
    """The arguments do not fit the signature."""


class StateMismatch(TargetError):
    """A candidate module whose state_dict does not take the reference's parameters and buffers."""
