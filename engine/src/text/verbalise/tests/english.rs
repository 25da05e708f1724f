//! English, row by row. Numbers after CLDR, forms after the Chicago Manual of Style (chapter 9, numbers) and the Oxford
//! guide; ambiguous forms in both directions.

use super::*;

/// What random texts are made of.
pub(super) const PIECES: &[&str] = &[
    "$",
    "€",
    "1,234.50",
    "11/29/2026",
    "3:45",
    " p.m.",
    "Dr. ",
    "Nov. ",
    "29",
    "th",
    " ",
    ", ",
    ". ",
    "https://",
    "example.com",
    "@",
    "a.b",
    "#",
    "IV",
    "Henry ",
    "NASA",
    "FBI",
    "km",
    "/h",
    "%",
    "-",
    "–",
    "+1 (415) 555-0132",
    "192.168.0.1",
    "v2",
    ".1",
    "1/2",
    "½",
    "²",
    "٣",
    "<<",
    ">>",
    "H100",
    "COVID-19",
    "my_name",
    "°C",
    "\n",
    "5",
    "2026",
    " apples",
    " million",
    "USD ",
    "U.S.",
    "J. ",
    "Smith",
    "'",
    "\"",
    "'90s",
    "=",
    "<",
    "*",
    "^",
    "5'10\"",
    "°",
    " N",
    "mid-",
    "80s",
    "2Q26",
    "UTC+2",
    "/kg",
    " usd",
    " a.m",
    "jan. 5",
    " 5th St",
    ", OR",
    "978-0",
    " (1990)",
    "ending in ",
    "-3.5",
    "@a.b",
    " BC",
    "2h ",
    "30m",
    "100s of",
    " : 2",
    "#A1",
    "Tue, 3/4",
    "las 13.30",
    " and 30s",
    "34\"",
];

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
            ("0.05 and .5", "zero point zero five and point five"),
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
            ("29.11.2026", "the twenty-ninth of November twenty twenty-six"),
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

#[test]
fn telephones_cards_and_machines() {
    check(
        "en-US",
        Conventions::DEFAULT,
        &[
            (
                "Call +1 (415) 555-0132 or",
                "Call plus one, four one five, five five five, zero one three two or",
            ),
            ("(415) 555-0132.", "four one five, five five five, zero one three two."),
            ("415-555-0132", "four one five, five five five, zero one three two"),
            ("415.555.0132", "four one five, five five five, zero one three two"),
            ("1-800-555-0199", "one, eight hundred, five five five, zero one nine nine"),
            ("020 7946 0958", "zero two zero, seven nine four six, zero nine five eight"),
            ("dial 555-0132", "dial five five five, zero one three two"),
            (
                "card 4111 1111 1111 1111",
                "card four one one one, one one one one, one one one one, one one one one",
            ),
            ("order 48213977", "order four eight two one three nine seven seven"),
            ("ID 123-45-6789", "ID one two three, four five, six seven eight nine"),
            ("192.168.0.1", "one nine two dot one six eight dot zero dot one"),
            ("Python 3.12.1", "Python three dot twelve dot one"),
            ("v2.1.3", "version two dot one dot three"),
            ("ext. 42", "extension forty-two"),
        ],
    );
}

#[test]
fn names_with_digits() {
    check(
        "en-US",
        SPACED,
        &[
            ("an H100 card", "an H one hundred card"),
            ("A4 paper", "A four paper"),
            ("COVID-19", "COVID nineteen"),
            ("GPT-4o", "G P T four O"),
            ("B2B", "B two B"),
            ("MP3", "M P three"),
            ("the F-16", "the F sixteen"),
            ("X570", "X five seventy"),
            ("my_file_name stays", "my file name stays"),
            ("call getUserName() now", "call get User Name now"),
            ("ISO-9001", "I S O nine thousand one"),
            ("5G and 3D", "five G and three D"),
        ],
    );
}

#[test]
fn addresses() {
    check(
        "en-US",
        SPACED,
        &[
            (
                "http://example.com/x12/",
                "H T T P colon slash slash example dot com slash X one two slash",
            ),
            (
                "1930-45 and 42/30/1000",
                "nineteen thirty to forty-five and forty-two over thirty over one thousand",
            ),
            ("555-7162", "five five five, seven one six two"),
            ("pages 998-1005", "pages nine hundred ninety-eight to one thousand five"),
            ("see https://example.com/help.", "see example dot com slash help."),
            ("test.user@example.com", "test dot user at example dot com"),
            ("www.bbc.co.uk", "W W W dot B B C dot co dot U K"),
            (
                "at https://docs.example.com/a?b=1",
                "at docs dot example dot com slash A question mark B equals one",
            ),
            ("open report.pdf", "open report dot P D F"),
            ("on github.com/rust-lang", "on github dot com slash rust dash lang"),
            ("end of it.Then", "end of it.Then"),
            ("#MondayMotivation", "hashtag Monday Motivation"),
            ("by @jane_doe42", "by at jane doe forty-two"),
            ("#1 choice", "number one choice"),
        ],
    );
}

#[test]
fn short_forms() {
    check(
        "en-US",
        SPACED,
        &[
            ("Dr. Okafor lives on Main St.", "Doctor Okafor lives on Main Street."),
            ("St. John's Church", "Saint John's Church"),
            ("12 Main St. in Oslo", "twelve Main Street in Oslo"),
            ("Lake Dr. is closed", "Lake Drive is closed"),
            ("Mr. and Mrs. Smith", "Mister and Missus Smith"),
            ("Ask Prof. Lind", "Ask Professor Lind"),
            ("apples, pears, etc.", "apples, pears, et cetera."),
            ("etc. and so on", "et cetera and so on"),
            ("e.g. bread", "for example bread"),
            (
                "e.g. https://a.example/x?y=1",
                "for example A dot example slash X question mark Y equals one",
            ),
            ("vs. http://example.com", "versus example dot com"),
            ("i.e., now", "that is, now"),
            ("No. 5", "number five"),
            ("No. That is wrong.", "No. That is wrong."),
            ("cats vs. dogs", "cats versus dogs"),
            ("approx. 5 kg", "approximately five kilograms"),
            ("in the U.S. Senate", "in the U S Senate"),
            ("in the U.S. She", "in the U S. She"),
            ("C. S. Lewis", "C S Lewis"),
            ("J.R.R. Tolkien", "J R R Tolkien"),
            ("a Ph.D. in", "a P H D in"),
            ("John Smith Jr.", "John Smith Junior."),
            ("w/o sugar", "without sugar"),
            ("Fig. 3 and p. 12", "figure three and page twelve"),
        ],
    );
}

#[test]
fn letters_and_words_in_capitals() {
    let rows = [
        ("The FBI and NASA", "The FBI and Nasa", "The F B I and NASA", "The eff bee eye and NASA"),
        ("our CEO", "our CEO", "our C E O", "our see ee oh"),
        ("two PCs", "two PCs", "two P C's", "two pee see's"),
        ("STOP NOW", "STOP NOW", "STOP NOW", "STOP NOW"),
        ("IT IS FREE", "IT IS FREE", "IT IS FREE", "IT IS FREE"),
        ("the IT team", "the IT team", "the I T team", "the eye tee team"),
        ("in the UK.", "in the UK.", "in the U K.", "in the you kay."),
        ("an HTTP server", "an HTTP server", "an H T T P server", "an aitch tee tee pee server"),
    ];
    let names = Conventions { initialisms: Initialisms::Names, ..SPACED };
    for (text, caps, spaced, named) in rows {
        assert_eq!(say("en-US", Conventions::DEFAULT, text), caps);
        assert_eq!(say("en-US", SPACED, text), spaced);
        assert_eq!(say("en-US", names, text), named);
    }
    let with_and = Conventions { number_and: true, ..SPACED };
    assert_eq!(
        say("en-GB", with_and, "1,234,567"),
        "one million two hundred and thirty-four thousand five hundred and sixty-seven"
    );
}

#[test]
fn roman_numerals() {
    check(
        "en-US",
        SPACED,
        &[
            ("Henry IV was", "Henry the fourth was"),
            ("Charles M Schulz, John D.", "Charles M Schulz, John D."),
            ("the IV drip", "the I V drip"),
            ("Chapter XII", "Chapter twelve"),
            ("World War II ended", "World War two ended"),
            ("Elizabeth II's", "Elizabeth the second's"),
            ("I am", "I am"),
            ("Super Bowl LVIII", "Super Bowl fifty-eight"),
            ("Rocky II", "Rocky two"),
            ("an MD", "an M D"),
        ],
    );
}

#[test]
fn signs() {
    check(
        "en-US",
        SPACED,
        &[
            ("R&D", "R and D"),
            ("Tom & Ann", "Tom and Ann"),
            ("§ 5", "section five"),
            ("90° left", "ninety degrees left"),
            ("5 ± 2", "five plus or minus two"),
            ("and/or", "and or"),
            ("a → b", "a to b"),
            ("Wait... now", "Wait... now"),
            ("one — two", "one — two"),
            ("10m²", "ten square meters"),
            ("١٢ and ５", "twelve and five"),
        ],
    );
}

#[test]
fn what_stands_between_double_angles_is_passed_through() {
    assert_eq!(
        say("en-US", SPACED, "<<Siân K9 $5>> sings 2 <<songs"),
        "Siân K9 $5 sings two <<songs"
    );
}

#[test]
fn what_agents_write() {
    check(
        "en-US",
        SPACED,
        &[
            ("Room 305", "Room three oh five"),
            ("Flight 1234 to", "Flight twelve thirty-four to"),
            ("123 Main St, Anytown", "one twenty-three Main Street, Anytown"),
            ("1600 Pennsylvania Avenue", "sixteen hundred Pennsylvania Avenue"),
            ("123 apples", "one hundred twenty-three apples"),
            ("Mon-Fri 9am-5pm", "Monday to Friday nine A M to five P M"),
            ("5M users", "five million users"),
            ("a 50/50 split", "a fifty fifty split"),
            ("1920x1080", "nineteen twenty by ten eighty"),
            ("CO2 and H2O", "C O two and H two O"),
            ("under (<5 min)", "under (less than five minutes)"),
            ("~$20", "about twenty dollars"),
            (">50%", "greater than fifty percent"),
            ("1,000+ people", "one thousand plus people"),
            ("3–5 business days", "three to five business days"),
            ("a 10-year-old", "a ten-year-old"),
            ("a 24-hour shift", "a twenty-four-hour shift"),
            ("AT&T", "A T and T"),
            ("XIV", "fourteen"),
            ("$1.2M–$1.5M", "one point two million to one point five million dollars"),
            ("Q3 2026", "Q three twenty twenty-six"),
            ("Ctrl + Z", "control plus Z"),
            ("1-on-1", "one on one"),
            ("10am–4pm", "ten A M to four P M"),
            ("Jan 5th–7th", "January fifth to seventh"),
            ("Thurs., Dec. 3", "Thursday, December third"),
        ],
    );
}

#[test]
fn what_agents_write_in_a_hurry() {
    check(
        "en-US",
        SPACED,
        &[
            ("at 2:30 p.m. EST", "at two thirty P M E S T"),
            ("The S&P 500", "The S and P five hundred"),
            ("ships 12/25.", "ships December twenty-fifth."),
            ("on 9/11", "on September eleventh"),
            ("CA 90001", "C A nine zero zero zero one"),
            ("E=mc²", "E equals mc squared"),
            ("CO₂", "C O two"),
            ("Rev. Dr. King Jr. Blvd.", "Reverend Doctor King Junior Boulevard."),
            ("5 ft. 10 in. tall", "five feet ten inches tall"),
            ("1 1/2 tsp salt", "one and a half teaspoons salt"),
            (
                "192.168.1.254:8080",
                "one nine two dot one six eight dot one dot two five four colon eight zero eight zero",
            ),
            ("in /usr/local/bin", "in slash usr slash local slash bin"),
            ("1.5e-3", "one point five times ten to the power of minus three"),
            ("C++ and C#", "C plus plus and C sharp"),
            ("the 80/20 rule", "the eighty twenty rule"),
            ("me @ home :)", "me at home "),
            ("jan 5 2012", "January fifth twenty twelve"),
            ("code 4-8-1-5", "code four, eight, one, five"),
            ("Call 911.", "Call nine one one."),
            ("911 people", "nine hundred eleven people"),
            ("10% APR", "ten percent A P R"),
            ("Jan-Mar 2026", "January to March twenty twenty-six"),
            ("A $5M Series A", "A five million dollar Series A"),
            ("a 401(k) plan", "a four oh one K plan"),
            ("450 W. 5th St.", "four fifty West fifth Street."),
            ("30x20x15 cm", "thirty by twenty by fifteen centimeters"),
            ("$2.50/1M tokens", "two dollars and fifty cents per one million tokens"),
            ("steps/day", "steps per day"),
            ("the '08 crisis", "the oh eight crisis"),
            ("followed by #.", "followed by hash."),
            ("we may 5 times", "we may five times"),
            ("Rs. 500", "five hundred rupees"),
            ("80 km/hr", "eighty kilometers per hour"),
            ("he is 5'6", "he is five feet six inches"),
            ("1 in 5", "one in five"),
            ("wait 30s", "wait thirty seconds"),
            ("in the 30s", "in the thirties"),
            ("1st-3rd grade", "first to third grade"),
            ("20/20 vision", "twenty twenty vision"),
            ("a 50-50 chance", "a fifty fifty chance"),
            ("9.5/10", "nine point five over ten"),
            ("a.k.a. Bob", "also known as Bob"),
        ],
    );
}

#[test]
fn bare_days_and_times() {
    check(
        "en-US",
        SPACED,
        &[
            ("mid-1970s", "mid nineteen seventies"),
            ("the early-90s scene", "the early nineties scene"),
            ("1970s-80s", "nineteen seventies to eighties"),
            ("temps in the low 60s", "temps in the low sixties"),
            ("feb. 3", "February third"),
            ("Feb-14-2026", "February fourteenth twenty twenty-six"),
            ("Tue.-Fri.", "Tuesday to Friday."),
            ("25/12/2026", "the twenty-fifth of December twenty twenty-six"),
            ("2Q26", "the second quarter of twenty-six"),
            ("the 1H 2025 report", "the first half of twenty twenty-five report"),
            ("240 BC", "two forty B C"),
            ("1066 A.D", "ten sixty-six A D"),
            ("7.15 p.m.", "seven fifteen P M."),
            ("7:15 a.m", "seven fifteen A M"),
            ("9pm,then home", "nine P M,then home"),
            ("2:05:09", "two hours five minutes and nine seconds"),
            ("UTC+2 or GMT-3:30", "U T C plus two or G M T minus three thirty"),
            ("1988 (1990)", "nineteen eighty-eight (nineteen ninety)"),
            ("2h 30m", "two hours thirty minutes"),
            ("5m 30s", "five minutes thirty seconds"),
            ("5m", "five meters"),
            ("1776", "seventeen seventy-six"),
            ("1776 apples", "one thousand seven hundred seventy-six apples"),
            ("on Tue, 3/4 at noon", "on Tuesday, March fourth at noon"),
            ("in the 1920s and 30s", "in the nineteen twenties and thirties"),
        ],
    );
}

#[test]
fn bare_amounts() {
    check(
        "en-US",
        SPACED,
        &[
            ("23/3", "twenty-three thirds"),
            ("$7.5", "seven dollars and fifty cents"),
            ("$7.500", "seven dollars and fifty cents"),
            ("$0.1250", "zero point one two five dollars"),
            ("20 chf or chf 20", "twenty Swiss francs or twenty Swiss francs"),
            ("the $ fell, priced in $", "the dollar fell, priced in dollars"),
            ("7/kg", "seven per kilogram"),
            ("5 mg/kg", "five milligrams per kilogram"),
            ("40 mbps", "forty megabits per second"),
            ("3 km³", "three cubic kilometers"),
            ("a 55\" screen", "a fifty-five inch screen"),
            ("he said \"7\" twice", "he said \"seven\" twice"),
            ("9-4=5", "nine minus four equals five"),
            ("9−4=5", "nine minus four equals five"),
            ("6∗7", "six times seven"),
            ("8∕2", "eight divided by two"),
            ("12 x 9 m", "twelve by nine meters"),
            ("1/8th", "one eighth"),
            ("0.75 or .75", "zero point seven five or point seven five"),
            ("$1.5 M", "one point five million dollars"),
            ("5¢", "five cents"),
            ("100s of birds", "hundreds of birds"),
            ("220V", "two hundred twenty volts"),
            ("40.7,-74.5", "forty point seven,minus seventy-four point five"),
            ("A ⊆ B", "A subset of or equal to B"),
            ("turn 45º left", "turn forty-five degrees left"),
            ("6'2\" and a 34\" waist", "six feet two inches and a thirty-four inch waist"),
            ("95/100 and 3/100", "ninety-five over one hundred and three one hundredths"),
        ],
    );
}

#[test]
fn bare_names_and_places() {
    check(
        "en-US",
        SPACED,
        &[
            ("GPT-3.5", "G P T three point five"),
            ("@jo.doe", "at jo dot doe"),
            ("example.com/?a&b", "example dot com slash question mark A ampersand B"),
            ("card ending in 4417", "card ending in four four one seven"),
            ("your code is KX4417", "your code is K X four four one seven"),
            ("in Miami, FL 33101", "in Miami, Florida three three one zero one"),
            ("Austin, TX", "Austin, Texas"),
            ("Well, OK", "Well, O K"),
            ("305 N 2nd St", "three oh five North second Street"),
            ("60601-1234", "six zero six zero one, one two three four"),
            ("978-3", "nine hundred seventy-eight-three"),
            ("4155550132123", "four one five five five five zero one three two one two three"),
            ("in the U.S we", "in the U S we"),
            ("IX", "nine"),
            ("photo.jpg", "photo dot jpeg"),
            ("ver. 2", "version two"),
            ("shop.widget", "shop dot widget"),
            ("Rte. 66", "Route sixty-six"),
            ("Order #A1B2", "Order number A one B two"),
            ("Apt. #5B", "apartment number five B"),
        ],
    );
}
