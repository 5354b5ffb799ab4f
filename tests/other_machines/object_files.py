"""The symbols that an object file refers to and does not define: ELF, Mach-O and COFF, of 64 bits, little endian."""

import struct


def undefined_symbols(image):
    """Their names, as the source has them: Mach-O puts an underscore before each."""
    if image[:4] == b"\x7fELF":
        names = _of_elf(image)
    elif image[:4] == b"\xcf\xfa\xed\xfe":
        names = [name.removeprefix("_") for name in _of_macho(image)]
    else:
        names = _of_coff(image)
    return sorted(set(names))


def _text(image, place):
    return image[place : image.index(b"\0", place)].decode()


def _of_elf(image):
    (sections,) = struct.unpack_from("<Q", image, 40)
    size, count = struct.unpack_from("<HH", image, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", image, sections + i * size) for i in range(count)]
    for _, kind, _, _, start, length, link, _, _, step in heads:
        if kind == 2:  # SHT_SYMTAB
            strings = heads[link][4]
            for place in range(start + step, start + length, step):
                name, info, _, section = struct.unpack_from("<IBBH", image, place)
                if section == 0 and info >> 4:  # SHN_UNDEF, not local
                    yield _text(image, strings + name)


def _of_macho(image):
    (commands,) = struct.unpack_from("<I", image, 16)
    place = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", image, place)
        if command == 2:  # LC_SYMTAB
            symbols, count, strings, _ = struct.unpack_from("<IIII", image, place + 8)
            for i in range(count):
                name, kind = struct.unpack_from("<IB", image, symbols + 16 * i)
                if kind & 0x0E == 0 and not kind & 0xE0:  # N_UNDF, no debugger's entry
                    yield _text(image, strings + name)
        place += size


def _of_coff(image):
    symbols, count = struct.unpack_from("<II", image, 8)
    strings = symbols + 18 * count
    i = 0
    while i < count:
        short, value, section, _, storage, further = struct.unpack_from("<8sIhHBB", image, symbols + 18 * i)
        if section == 0 and value == 0 and storage == 2:  # external
            zeros, place = struct.unpack("<II", short)
            yield _text(image, strings + place) if zeros == 0 else short.rstrip(b"\0").decode()
        i += 1 + further
