//! English, row by row. Numbers after CLDR, forms after the Chicago Manual of Style (chapter 9, numbers) and the Oxford
//! guide; ambiguous forms in both directions.

use super::*;

#[test]
fn numbers() {
    check(
        "en-US",
        Conventions::DEFAULT,
        &[
            ("I have 3 cats.", "I have three cats."),
            (
                "1,234,567 people",
                "one million two hundred thirty-four thousand five hundred sixty-seven people",
            ),
            ("3.14 is pi", "three point one four is pi"),
            ("It fell to -5.", "It fell to minus five."),
            ("It rose by +3.", "It rose by plus three."),
            ("0.05 and .5", "zero point zero five and zero point five"),
            ("5.3 million users", "five point three million users"),
            ("1/2 cup", "one half cup"),
            ("3/4 done", "three quarters done"),
            ("3 1/2 cups", "three and a half cups"),
            ("2 3/4 cups", "two and three quarters cups"),
            ("3½ hours", "three and a half hours"),
            ("½ price", "one half price"),
            ("the 21st century", "the twenty-first century"),
            ("the 1,000th time", "the one thousandth time"),
            ("1st, 2nd, 3rd and 4th", "first, second, third and fourth"),
            ("pages 10-15", "pages ten to fifteen"),
            ("pages 10–15.", "pages ten to fifteen."),
            ("won 3-2", "won three to two"),
            ("a ratio of 3:2", "a ratio of three to two"),
            ("a 16:9 screen", "a sixteen to nine screen"),
            ("50% off", "fifty percent off"),
            ("5-10% more", "five to ten percent more"),
            ("12.5%", "twelve point five percent"),
            ("open 24/7", "open twenty-four seven"),
            ("120/80", "one hundred twenty over eighty"),
            ("~20 left", "about twenty left"),
            ("2 + 2 = 4", "two plus two equals four"),
            ("10 - 4 = 6", "ten minus four equals six"),
            ("3 × 4", "three by four"),
            ("5 * 3", "five times three"),
            ("x^2 and 2^10", "x squared and two to the power of ten"),
            ("a ≤ b", "a less than or equal to b"),
            ("5 > 3", "five greater than three"),
            (
                "12345678901234567890",
                "one two three four five six seven eight nine zero one two three four five six seven eight nine zero",
            ),
            ("007", "zero zero seven"),
        ],
    );
}

#[test]
fn years_and_counts() {
    check(
        "en-US",
        Conventions::DEFAULT,
        &[
            ("In 2026 we moved.", "In twenty twenty-six we moved."),
            ("2026 apples", "two thousand twenty-six apples"),
            ("since 1066", "since ten sixty-six"),
            ("It was 1984.", "It was nineteen eighty-four."),
            ("He paid 1500.", "He paid one thousand five hundred."),
            ("from 1990–2000", "from nineteen ninety to two thousand"),
            ("the 1990s", "the nineteen nineties"),
            ("the '90s and the 80s", "the nineties and the eighties"),
            ("in 1905", "in nineteen oh five"),
            ("2,026 people", "two thousand twenty-six people"),
            ("The 2026 World Cup", "The twenty twenty-six World Cup"),
        ],
    );
}

#[test]
fn money() {
    check(
        "en-US",
        Conventions::DEFAULT,
        &[
            (
                "Your total is $1,234.50, thanks.",
                "Your total is one thousand two hundred thirty-four dollars and fifty cents, thanks.",
            ),
            ("$1", "one dollar"),
            ("$0.99", "ninety-nine cents"),
            ("$5.00", "five dollars"),
            ("$1.01", "one dollar and one cent"),
            ("-$20", "minus twenty dollars"),
            ("USD 5.3m", "five point three million US dollars"),
            ("$2.5 billion", "two point five billion dollars"),
            ("a $20 million deal", "a twenty million dollar deal"),
            ("£3.50", "three pounds and fifty pence"),
            ("20 €", "twenty euros"),
            ("€1.5bn", "one point five billion euros"),
            ("¥500", "five hundred yen"),
            ("$5-10", "five to ten dollars"),
            ("$20/month", "twenty dollars per month"),
            ("$15/hr", "fifteen dollars per hour"),
            ("$80k", "eighty thousand dollars"),
            ("CHF 20", "twenty Swiss francs"),
        ],
    );
}

#[test]
fn days_and_times() {
    check(
        "en-US",
        Conventions::DEFAULT,
        &[
            ("due 11/29/2026 at", "due November twenty-ninth twenty twenty-six at"),
            ("2026-11-29", "November twenty-ninth twenty twenty-six"),
            ("29.11.2026", "November twenty-ninth twenty twenty-six"),
            ("November 29, 2026", "November twenty-ninth, twenty twenty-six"),
            ("Nov. 29th", "November twenty-ninth"),
            ("29 November 2026", "the twenty-ninth of November twenty twenty-six"),
            ("the 4th of July", "the fourth of July"),
            ("Sunday, Nov 29", "Sunday, November twenty-ninth"),
            ("in Nov. 2026", "in November twenty twenty-six"),
            ("due 11/29.", "due November twenty-ninth."),
            ("3/4/26", "March fourth twenty twenty-six"),
            ("at 3:45 PM.", "at three forty-five PM."),
            ("at 3:45pm", "at three forty-five PM"),
            ("5 p.m. today", "five PM today"),
            ("until 5 p.m. Then", "until five PM. Then"),
            ("at 3:00", "at three o'clock"),
            ("at 9:05", "at nine oh five"),
            ("at 15:45", "at fifteen forty-five"),
            ("at 15:00", "at fifteen hundred"),
            ("9-11am", "nine to eleven AM"),
            ("9:00-17:00", "nine to seventeen hundred"),
            (
                "2026-11-29T15:45:00Z",
                "November twenty-ninth twenty twenty-six fifteen forty-five UTC",
            ),
            ("May 5 people come", "May fifth people come"),
            ("it may 5 fold", "it may five fold"),
        ],
    );
    check(
        "en-GB",
        Conventions::DEFAULT,
        &[
            ("due 29/11/2026", "due the twenty-ninth of November twenty twenty-six"),
            ("3/4/26", "the third of April twenty twenty-six"),
            ("5 km", "five kilometres"),
        ],
    );
}

#[test]
fn measures() {
    check(
        "en-US",
        Conventions::DEFAULT,
        &[
            ("5.2 km", "five point two kilometers"),
            ("1 kg of flour", "one kilogram of flour"),
            ("100km/h", "one hundred kilometers per hour"),
            ("20°C", "twenty degrees Celsius"),
            ("-5 °F", "minus five degrees Fahrenheit"),
            ("5 m²", "five square meters"),
            ("16GB of RAM", "sixteen gigabytes of Ram"),
            ("5-10 kg", "five to ten kilograms"),
            ("a 5-km run", "a five kilometer run"),
            ("5'10\"", "five feet ten inches"),
            ("40.7128° N", "forty point seven one two eight degrees north"),
            ("30 min", "thirty minutes"),
            ("5 in the box", "five in the box"),
            ("10 in.", "ten inches."),
            ("4K video", "four K video"),
        ],
    );
}
