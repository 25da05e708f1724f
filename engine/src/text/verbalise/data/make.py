#!/usr/bin/env python3
"""Makes the tables of this folder from CLDR.

    npm pack cldr-rbnf@48.2.0 cldr-dates-full@48.2.0 cldr-numbers-full@48.2.0 cldr-units-full@48.2.0 \
        cldr-annotations-full@48.2.0
    for f in *.tgz; do mkdir -p x/${f%-48*}; tar xzf $f -C x/${f%-48*} --strip-components=1; done
    python3 make.py x

LANG.rbnf is the spell-out rule file as it is, but for what `mended` says. LANG.words has one name a line, its fields parted by tabs:

    month  NUMBER  full  short
    day    1..7 (Monday first)  full  short
    money  ISO-CODE  one  other
    unit   CLDR-NAME  gender (m, f, n or -)  one  other   ({0} is the number where the name is not just behind it)

LANG.emoji has one pictograph a line, and its name; those with a digit in the name are left out.

A file of a region (en-GB) holds only the lines that differ from its language's.
"""

import json
import pathlib
import sys

LANGUAGES = ["en", "de", "es", "fr", "it", "nl", "pt"]
REGIONS = ["en-GB", "de-AT", "de-CH", "fr-BE", "fr-CH", "pt-PT"]
DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
MONEY = """AED ARS AUD BRL BTC CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR ISK JPY KRW MXN MYR NGN NOK NZD
PEN PHP PLN RON RUB SAR SEK SGD THB TRY TWD UAH USD VND ZAR""".split()
UNITS = """acceleration-meter-per-square-second area-acre area-hectare area-square-centimeter area-square-foot
area-square-inch area-square-kilometer area-square-meter area-square-mile area-square-yard consumption-mile-per-gallon
consumption-liter-per-100-kilometer digital-bit digital-byte digital-gigabit digital-gigabyte digital-kilobit digital-kilobyte
digital-megabit digital-megabyte digital-petabyte digital-terabyte duration-day duration-hour duration-microsecond
duration-millisecond duration-minute duration-month duration-nanosecond duration-second duration-week duration-year
electric-ampere electric-milliampere electric-ohm electric-volt energy-calorie energy-joule energy-kilocalorie
energy-kilojoule energy-kilowatt-hour force-newton frequency-gigahertz frequency-hertz frequency-kilohertz
frequency-megahertz graphics-megapixel graphics-pixel graphics-dot-per-inch length-centimeter length-foot length-inch
length-kilometer length-meter length-micrometer length-mile length-millimeter length-nanometer length-nautical-mile
length-yard length-decimeter light-lumen light-lux mass-gram mass-kilogram mass-microgram mass-milligram mass-ounce mass-pound
mass-tonne mass-stone power-gigawatt power-horsepower power-kilowatt power-megawatt power-milliwatt power-watt pressure-bar
pressure-hectopascal pressure-kilopascal pressure-pascal pressure-pound-force-per-square-inch speed-kilometer-per-hour
speed-knot speed-meter-per-second speed-mile-per-hour temperature-celsius temperature-fahrenheit temperature-generic
temperature-kelvin volume-centiliter volume-cubic-centimeter volume-cubic-foot volume-cubic-meter volume-cup
volume-deciliter volume-fluid-ounce volume-gallon volume-liter volume-milliliter volume-pint volume-quart
volume-tablespoon volume-teaspoon torque-newton-meter angle-degree angle-arc-minute angle-arc-second""".split()


def read(root, package, language, name):
    path = root / package / "main" / language / name
    return json.loads(path.read_text(encoding="utf-8"))["main"][language]


def behind_number(pattern):
    return pattern.replace("\u00a0", " ").removeprefix("{0} ")


def words(root, language):
    calendar = read(root, "cldr-dates-full", language, "ca-gregorian.json")["dates"]["calendars"]["gregorian"]
    for number in range(1, 13):
        names = [calendar["months"]["format"][width][str(number)] for width in ("wide", "abbreviated")]
        yield ["month", str(number), *names]
    for number, day in enumerate(DAYS, 1):
        names = [calendar["days"]["format"][width][day] for width in ("wide", "abbreviated")]
        yield ["day", str(number), *names]
    currencies = read(root, "cldr-numbers-full", language, "currencies.json")["numbers"]["currencies"]
    for code in MONEY:
        names = currencies.get(code)
        if names:
            other = names.get("displayName-count-other", names["displayName"])
            pair = [names.get("displayName-count-one", other), other]
            if language.startswith("pt"):  # written with a capital letter in lists only
                pair = [name[0].lower() + name[1:] for name in pair]
            yield ["money", code, *pair]
    units = read(root, "cldr-units-full", language, "units.json")["units"]["long"]
    for name in UNITS:
        unit = units[name]
        other = unit["unitPattern-count-other"]
        one = unit.get("unitPattern-count-one", other)
        gender = unit.get("gender", "-")[0]
        yield ["unit", name, gender, behind_number(one), behind_number(other)]


def emoji(root, language):
    path = root / "cldr-annotations-full" / "annotations" / language / "annotations.json"
    names = json.loads(path.read_text(encoding="utf-8"))["annotations"]["annotations"]
    for sign, name in names.items():
        pictograph = len(sign) == 1 and (0x1F300 <= ord(sign) <= 0x1FAFF or 0x2600 <= ord(sign) <= 0x27BF)
        spoken = name.get("tts", [""])[0]
        if pictograph and spoken and not any(c.isdigit() for c in spoken):
            yield [sign, spoken]


def mended(language, rules):
    """What CLDR writes against the grammars of French: `cent-et-unième` for `cent unième`, `quatre-vingt-et-onzième` for
    `quatre-vingt-onzième`; and for Belgium `quatre-vingts mille` and `quatre-vingt cinq`."""
    if language == "fr-BE":
        sets = "".join(
            f"%%subcents-{gender}:\n0: s;\n1: -=%spellout-cardinal-{name}=;\n"
            for gender, name in (("m", "masculine"), ("f", "feminine"))
        )
        ordinal = "%%subcents-o:\n0: ième;\n1: -unième;\n2: -=%%spellout-ordinal=;\n"
        for gender in "mfo":
            rules = rules.replace(f"80: quatre-vingt>%%cents-{gender}>;", f"80: quatre-vingt>%%subcents-{gender}>;")
        leading = "%%spellout-leading:\n0: =%spellout-cardinal-masculine=;\n"
        tens = "80: quatre-vingt[->>];\n90: =%spellout-cardinal-masculine=;\n"
        rules = rules.replace(leading, sets + ordinal + leading + tens)
    if language.startswith("fr"):
        behind = {"%%subcents-o:": "-", "%%cents-o:": "' ", "%%mille-o:": "e "}
        part, lines = None, rules.split("\n")
        for number, line in enumerate(lines):
            if line.startswith("%"):
                part = behind.get(line)
            elif part and line.startswith("1:"):
                lines[number] = f"1: {part}unième;"
            elif part and line.startswith("11:"):
                lines[number] = f"11: {part}onzième;"
        rules = "\n".join(lines)
    return rules


def main():
    root, here = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent
    base = {language: ["\t".join(row) for row in words(root, language)] for language in LANGUAGES}
    for language in LANGUAGES + REGIONS:
        rows = base.get(language)
        if rows is None:
            known = base[language.split("-")[0]]
            rows = [row for row in ("\t".join(r) for r in words(root, language)) if row not in known]
        if rows:
            (here / f"{language}.words").write_text("\n".join(rows) + "\n", encoding="utf-8")
        if language in base:
            names = "\n".join("\t".join(row) for row in emoji(root, language))
            (here / f"{language}.emoji").write_text(names + "\n", encoding="utf-8")
        rules = root / "cldr-rbnf" / "rbnf" / f"{language.replace('-', '_')}-SpelloutRules.txt"
        if rules.exists():
            text = rules.read_bytes().decode("utf-8")
            (here / f"{language}.rbnf").write_bytes(mended(language, text).encode("utf-8"))
    (here / "LICENSE").write_bytes((root / "cldr-rbnf" / "LICENSE").read_bytes())


if __name__ == "__main__":
    main()
