"""Calls of kernels in Python, in the engine's worker processes."""
import contextlib
import ctypes
import ctypes.util
import importlib.util
import inspect
import os
import sys
import traceback

DONE, REFUSED, FAILED, MISUSED = range(4)
CPU, CUDA = 1, 2
_FLOAT, _INT, _UINT, _BFLOAT = 2, 0, 1, 4


class Refused(Exception):
    """Raised by a kernel that cannot take a call: counted and shown, no failure."""


class _Misused(Exception):
    """A function that cannot be called as the contract says."""


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32), ("type", _Type),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


class _Call(ctypes.Structure):
    """assay_call of assay/plugin.h."""
    _fields_ = [("version", ctypes.c_uint32), ("dim_count", ctypes.c_int32), ("param_count", ctypes.c_int32),
                ("tensor_count", ctypes.c_int32), ("op", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("dim_names", ctypes.POINTER(ctypes.c_char_p)), ("params", ctypes.POINTER(ctypes.c_double)),
                ("param_names", ctypes.POINTER(ctypes.c_char_p)), ("tensors", ctypes.POINTER(_Tensor)),
                ("tensor_names", ctypes.POINTER(ctypes.c_char_p)), ("device", _Device), ("stream", ctypes.c_void_p),
                ("message", ctypes.POINTER(ctypes.c_char)), ("message_bytes", ctypes.c_size_t)]


_lent = {}  # what consumers of capsules have not given back


@_DELETER
def _give_back(managed):
    _lent.pop(ctypes.addressof(managed.contents), None)


ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor:
    """A tensor of a call: what numpy.asarray(), numpy.from_dlpack() and torch.from_dlpack() take.

    Attributes: shape and strides in elements, dtype ("float32", "float16", "bfloat16", "int32", "uint8").
    It is valid until the kernel returns.
    """

    def __init__(self, raw, writable):
        self._raw, self._writable = raw, writable
        self.shape = tuple(raw.shape[axis] for axis in range(raw.ndim))
        self.strides = tuple(raw.strides[axis] for axis in range(raw.ndim))
        kind = {_FLOAT: "float", _INT: "int", _UINT: "uint", _BFLOAT: "bfloat"}[raw.type.code]
        self.dtype = f"{kind}{raw.type.bits}"
        if raw.device.kind == CPU and self.dtype != "bfloat16":
            size = raw.type.bits // 8
            self.__array_interface__ = {
                "version": 3, "shape": self.shape, "typestr": {"float": "<f", "int": "<i", "uint": "|u"}[kind] + str(size),
                "data": (raw.data or 0, not writable), "strides": tuple(size * step for step in self.strides)}

    def __dlpack_device__(self):
        return self._raw.device.kind, self._raw.device.number

    def __dlpack__(self, stream=None, **_):
        managed = _Managed(self._raw, None, _give_back)
        _lent[ctypes.addressof(managed)] = managed
        return ctypes.pythonapi.PyCapsule_New(ctypes.addressof(managed), b"dltensor", None)


def _as_numpy(tensor):
    import numpy
    if tensor._raw.device.kind != CPU:
        raise _Misused("NumPy holds host memory alone; take torch tensors for device=\"cuda\"")
    if tensor.dtype == "bfloat16":
        try:
            import ml_dtypes
        except ImportError:
            raise _Misused("NumPy has no bfloat16: install ml_dtypes, or take torch tensors") from None
        bits = Tensor(tensor._raw, tensor._writable)
        bits.__array_interface__ = {"version": 3, "shape": tensor.shape, "typestr": "<u2",
                                    "data": (tensor._raw.data or 0, not tensor._writable),
                                    "strides": tuple(2 * step for step in tensor.strides)}
        return numpy.asarray(bits).view(ml_dtypes.bfloat16)
    if 0 in tensor.shape:
        return numpy.empty(tensor.shape, tensor.dtype)
    return numpy.asarray(tensor)


def _as_torch(tensor):
    import torch
    if 0 in tensor.shape:
        place = "cpu" if tensor._raw.device.kind == CPU else "cuda"
        return torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype), device=place)
    return torch.utils.dlpack.from_dlpack(tensor.__dlpack__())


def _converter(function, parameters):
    """Returns what turns tensors into the arrays that the function takes: those of its annotations, else of the
    library that its module uses, else of the one that is imported, torch first; else the tensors themselves."""
    names = {str(getattr(p.annotation, "__module__", p.annotation)).split(".")[0] for p in parameters}
    names |= {str(p.annotation).split(".")[0] for p in parameters if isinstance(p.annotation, str)}
    for library, convert in (("torch", _as_torch), ("numpy", _as_numpy), ("np", _as_numpy)):
        if library in names:
            return convert
    values = list(vars(sys.modules.get(function.__module__, sys)).values())
    used = {str(getattr(v, "__name__" if inspect.ismodule(v) else "__module__", "")).split(".")[0] for v in values}
    for names in (used, sys.modules):
        for library, convert in (("torch", _as_torch), ("numpy", _as_numpy)):
            if library in names:
                return convert
    return lambda tensor: tensor


class _Kernel:
    """A function of a file, bound to the tensors, parameters and dims of a contract."""

    def __init__(self, file, name, signature):
        self.roles = dict(line.split() for line in signature.splitlines())
        self.name = name
        self.function = self._load(file, name)
        try:
            self.parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError):
            raise _Misused(f"{name} has no signature that Python can read: wrap it in a def") from None
        self.takes_all = any(p.kind == p.VAR_KEYWORD for p in self.parameters)
        self.taken = [p.name for p in self.parameters if p.name in self.roles]
        unknown = [p.name for p in self.parameters if p.name not in self.roles and p.default is p.empty
                   and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        if unknown:
            raise _Misused(f"{name} takes {', '.join(unknown)}, which the contract does not have: it has {', '.join(self.roles)}")
        self.positional = [p.name for p in self.parameters if p.kind == p.POSITIONAL_ONLY]
        self.returned = [t for t, role in self.roles.items()
                         if role == "out" and t not in self.taken and not self.takes_all]
        self.convert = _converter(self.function, self.parameters)

    @staticmethod
    def _load(file, name):
        module_name = os.path.splitext(os.path.basename(file))[0]
        sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        spec = importlib.util.spec_from_file_location(module_name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            raise _Misused(f"{file} cannot be imported: {_describe(error, file)}") from None
        found = module
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is None:
            raise _Misused(f"{file} has no {name}; functions inside of functions cannot be reached: define it at the module's level")
        if not callable(found):
            raise _Misused(f"{name} of {file} is a {type(found).__name__}, which cannot be called")
        return found

    def __call__(self, call):
        tensors = {call.tensor_names[t].decode(): call.tensors[t] for t in range(call.tensor_count)}
        values = {call.param_names[p].decode(): call.params[p] for p in range(call.param_count)}
        values.update((call.dim_names[d].decode(), call.dims[d]) for d in range(call.dim_count))
        arrays = {}

        def argument(name):
            if self.roles[name] == "absent":
                return None
            if name in tensors:
                if name not in arrays:
                    arrays[name] = self.convert(Tensor(tensors[name], self.roles[name] != "in"))
                return arrays[name]
            return int(values[name]) if self.roles[name] == "int" else values[name]

        names = list(self.roles) if self.takes_all else self.taken
        with _on_stream(call):
            given = self.function(*[argument(n) for n in self.positional],
                                  **{n: argument(n) for n in names if n not in self.positional})
            self._store(given, tensors)

    def _store(self, given, tensors):
        """Copies what the function returned into the call's outputs."""
        if not self.returned:
            if given is not None and not any(role == "inout" for role in self.roles.values()):
                raise _Misused(f"{self.name} takes its outputs and returns a value, too: return nothing")
            if given is None:
                return
        wanted = self.returned or [t for t, role in self.roles.items() if role == "inout"]
        if isinstance(given, dict):
            missing = [name for name in wanted if name not in given]
            if missing:
                raise _Misused(f"{self.name} returned a dict without {', '.join(missing)}")
            given = [given[name] for name in wanted]
        elif not isinstance(given, (tuple, list)):
            given = [given]
        nothing = len(given) == 1 and given[0] is None
        if nothing or len(given) != len(wanted):
            what = "nothing" if nothing else f"{len(given)} value{'' if len(given) == 1 else 's'}"
            raise _Misused(f"{self.name} returned {what} where {', '.join(wanted)} "
                           f"{'is' if len(wanted) == 1 else 'are'} expected")
        for name, value in zip(wanted, given):
            out = Tensor(tensors[name], True)
            shape, dtype = tuple(getattr(value, "shape", ())), str(getattr(value, "dtype", type(value).__name__))
            dtype = dtype.replace("torch.", "")
            if shape != out.shape:
                raise _Misused(f"{self.name} returned {name} of shape {shape} where {out.shape} is expected")
            if dtype != out.dtype:
                raise _Misused(f"{self.name} returned {name} of {dtype} where {out.dtype} is expected")
            if 0 in shape:
                continue
            if type(value).__module__.split(".")[0] == "torch":
                _as_torch(out).copy_(value)
            else:
                _as_numpy(out)[...] = value


@contextlib.contextmanager
def _on_stream(call):
    """Makes the call's stream the current one of torch, if the function uses torch."""
    torch = sys.modules.get("torch")
    if call.device.kind != CUDA or torch is None or not call.stream:
        yield
        return
    with torch.cuda.stream(torch.cuda.ExternalStream(call.stream)):
        yield


def _describe(error, file):
    """Returns type, text and the last line of the user's file."""
    text = f"{type(error).__name__}: {error}".rstrip(": ").replace("\n", " ")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if os.path.abspath(frame.filename) == os.path.abspath(file)]
    if isinstance(error, SyntaxError) and error.lineno:
        lines = [error.lineno]
    return f"{text} (line {lines[-1]})" if lines else text


_state = {"process": os.getpid(), "kernels": {}}


def _say(call, text):
    data = text.encode("utf-8", "replace")[:call.message_bytes - 1] + b"\0"
    ctypes.memmove(call.message, data, len(data))


def _call(file, function, signature, pointer):
    call, file, function = pointer.contents, os.fsdecode(file), function.decode()
    try:
        if _state["process"] != os.getpid():  # the engine forked: tell the interpreter
            ctypes.pythonapi.PyOS_AfterFork_Child()
            _state.update(process=os.getpid(), kernels={})
            sys.dont_write_bytecode = True
            ctypes.util.find_library = lambda name: None  # it starts compilers, with files of their own
        key = file, function, signature
        if key not in _state["kernels"]:
            _state["kernels"][key] = _Kernel(file, function, signature.decode())
        _state["kernels"][key](call)
        return DONE
    except Refused as why:
        _say(call, str(why) or "it gave no reason")
        return REFUSED
    except _Misused as why:
        _say(call, str(why))
        return MISUSED
    except BaseException as error:  # ctypes would take SystemExit for success
        _say(call, f"{function} raised {_describe(error, file)}")
        return FAILED


CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Call))(_call)
