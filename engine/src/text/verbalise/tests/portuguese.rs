//! Portuguese, row by row. Numbers after CLDR, forms after the Manual de Redação da Presidência da República and the
//! Ciberdúvidas da Língua Portuguesa; ambiguous forms in both directions.

use super::*;

/// Pieces of Portuguese texts that readings are made of.
pub(super) const PIECES: &[&str] = &[
    "R$ ",
    " milhões",
    " pessoas",
    "1º ",
    "2a ",
    "1/2 xícara",
    " de maio de ",
    "8h30",
    "9h-17h",
    "Dra. ",
    "século ",
    "123.456.789-09",
    "11 91234-5678",
];

#[test]
fn numbers() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("Tenho 1 livro, 2 livros e 2 páginas.", "Tenho um livro, dois livros e duas páginas."),
            ("200 pessoas e 200.000 pessoas", "duzentas pessoas e duzentas mil pessoas"),
            (
                "1.234.567 habitantes",
                "um milhão duzentos e trinta e quatro mil quinhentos e sessenta e sete habitantes",
            ),
            ("21 mulheres, 22 dias e 1 vez", "vinte e uma mulheres, vinte e dois dias e uma vez"),
            ("um total de 2.000.000 de pessoas", "um total de dois milhões de pessoas"),
            ("1.000.000 habitantes", "um milhão de habitantes"),
            ("Ele tem 21 e ela 32.", "Ele tem vinte e um e ela trinta e dois."),
            ("2 mãos e 2 mapas", "duas mãos e dois mapas"),
            ("1.234,50", "mil duzentos e trinta e quatro vírgula cinquenta"),
            (
                "3,14 e 0,05 e 2,5 horas",
                "três vírgula catorze e zero vírgula zero cinco e dois vírgula cinco horas",
            ),
            ("3.14 e Python 3.12.1", "três ponto catorze e Python três ponto doze ponto um"),
            ("Caiu para -5.", "Caiu para menos cinco."),
            ("Subiu +3.", "Subiu mais três."),
            ("5,3 milhões de usuários", "cinco vírgula três milhões de usuários"),
            ("1,5 milhão", "um vírgula cinco milhão"),
            ("16 gatos", "dezesseis gatos"),
            ("em 2026", "em dois mil e vinte e seis"),
            ("2 mil pessoas", "duas mil pessoas"),
            (
                "12345678901234567890",
                "um dois três quatro cinco seis sete oito nove zero um dois três quatro cinco seis sete oito nove zero",
            ),
            ("007", "zero zero sete"),
        ],
    );
}

#[test]
fn fractions_and_ordinals() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("1/2 xícara e 1/2 kg", "meia xícara e meio quilo"),
            ("2/3 e 5/12 do total", "dois terços e cinco doze avos do total"),
            ("3/4 xícara e 3/4 de xícara", "três quartos de xícara e três quartos de xícara"),
            ("2 1/2 xícaras", "duas e meia xícaras"),
            ("3 1/2", "três e meio"),
            ("½ litro", "meio litro"),
            ("1.º, 2.ª e 21.º", "primeiro, segunda e vigésimo primeiro"),
            ("1º lugar e 1ª vez", "primeiro lugar e primeira vez"),
            ("o 3o e a 4a", "o terceiro e a quarta"),
            ("o 112º", "o centésimo décimo segundo"),
        ],
    );
}

#[test]
fn ranges_scores_and_percent() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("páginas 10-15", "páginas dez a quinze"),
            ("ganhou por 3-2", "ganhou por três a dois"),
            ("uma proporção de 16:9", "uma proporção de dezesseis a nove"),
            ("50% e 1%", "cinquenta por cento e um por cento"),
            ("2% do total", "dois por cento do total"),
            ("5-10% mais", "cinco a dez por cento mais"),
            ("3,5%", "três vírgula cinco por cento"),
            ("50/50", "cinquenta cinquenta"),
            ("120/80", "cento e vinte por oitenta"),
            ("~20", "cerca de vinte"),
        ],
    );
}

#[test]
fn money() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("São R$ 2,50.", "São dois reais e cinquenta centavos."),
            ("R$ 1.234,56", "mil duzentos e trinta e quatro reais e cinquenta e seis centavos"),
            ("R$ 1,00 e R$ 0,50", "um real e cinquenta centavos"),
            ("R$ 1.000.000,00", "um milhão de reais"),
            ("R$ 5 milhões", "cinco milhões de reais"),
            ("R$ 5 mi e R$ 200 mil", "cinco milhões de reais e duzentos mil reais"),
            ("US$ 20", "vinte dólares"),
            ("€ 2,50", "dois euros e cinquenta cêntimos"),
            ("200 £ e 2 £", "duzentas libras e duas libras"),
            ("R$ 20/mês", "vinte reais por mês"),
            ("-R$ 20", "menos vinte reais"),
            ("R$ 10-20", "dez a vinte reais"),
            ("20 BRL", "vinte reais"),
            ("CHF 20", "vinte francos suíços"),
            ("200 SEK", "duzentas coroas suecas"),
            ("R$ 20 reais", "vinte reais"),
        ],
    );
}

#[test]
fn days() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("1º de maio de 2026", "primeiro de maio de dois mil e vinte e seis"),
            ("1 de maio", "primeiro de maio"),
            ("01/05/2026", "primeiro de maio de dois mil e vinte e seis"),
            ("15/03/26", "quinze de março de dois mil e vinte e seis"),
            ("2026-05-02", "dois de maio de dois mil e vinte e seis"),
            ("15.03.2026", "quinze de março de dois mil e vinte e seis"),
            ("sexta-feira, 1 de maio", "sexta-feira, primeiro de maio"),
            ("15 de set. de 2026", "quinze de setembro de dois mil e vinte e seis"),
            ("maio de 2026", "maio de dois mil e vinte e seis"),
            ("Em maio 5 pessoas", "Em maio cinco pessoas"),
            ("até 9/10 e 9/10 deles", "até nove de outubro e nove décimos deles"),
            ("Subiu para 3.5.", "Subiu para três ponto cinco."),
            ("Tenho dez.", "Tenho dez."),
        ],
    );
}

#[test]
fn times() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("às 15:45", "às quinze horas e quarenta e cinco"),
            ("às 8:30 e às 8h15", "às oito e meia e às oito horas e quinze"),
            ("à 1:00", "à uma hora"),
            ("às 15h", "às quinze horas"),
            ("às 15h30", "às quinze horas e trinta"),
            ("às 15:00 horas", "às quinze horas"),
            ("das 9:00 às 17:00", "das nove horas às dezessete horas"),
            ("9h-17h", "nove horas a dezessete horas"),
            ("às 3:45 p.m. de hoje", "às três e quarenta e cinco da tarde de hoje"),
            ("às 10 a.m.", "às dez da manhã."),
            ("13:45:30", "treze horas, quarenta e cinco minutos e trinta segundos"),
            (
                "2026-11-29T15:45:00Z",
                "vinte e nove de novembro de dois mil e vinte e seis quinze horas e quarenta e cinco U T C",
            ),
        ],
    );
}

#[test]
fn measures() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("5 km e 1 km", "cinco quilômetros e um quilômetro"),
            ("100 km/h", "cem quilômetros por hora"),
            ("20 °C e -5 °C", "vinte graus Celsius e menos cinco graus Celsius"),
            ("5 m²", "cinco metros quadrados"),
            ("16 GB de memória", "dezesseis gigabytes de memória"),
            ("5-10 kg", "cinco a dez quilos"),
            ("2 h e 30 min", "duas horas e trinta minutos"),
            (
                "40,7128° N, 74,006° O",
                "quarenta vírgula sete um dois oito graus norte, setenta e quatro vírgula zero zero seis graus oeste",
            ),
            ("100.000 m", "cem mil metros"),
            ("1.000.000 km", "um milhão de quilômetros"),
            ("30x20 cm", "trinta por vinte centímetros"),
            ("2 t", "duas toneladas"),
        ],
    );
}

#[test]
fn telephones_cards_and_machines() {
    check(
        "pt-BR",
        SPACED,
        &[
            (
                "+55 11 91234-5678",
                "mais cinco cinco, um um, nove um dois três quatro, cinco seis sete oito",
            ),
            ("(11) 91234-5678", "um um, nove um dois três quatro, cinco seis sete oito"),
            ("11 91234-5678", "um um, nove um dois três quatro, cinco seis sete oito"),
            ("0800 123 4567", "zero oito zero zero, um dois três, quatro cinco seis sete"),
            (
                "o cartão 4111 1111 1111 1111",
                "o cartão quatro um um um, um um um um, um um um um, um um um um",
            ),
            ("o pedido 48213977", "o pedido quatro oito dois um três nove sete sete"),
            ("CEP 01310-100", "CEP zero um três um zero, um zero zero"),
            (
                "CPF 123.456.789-09",
                "C P F um dois três, quatro cinco seis, sete oito nove, zero nove",
            ),
            (
                "CNPJ 12.345.678/0001-95",
                "C N P J um dois, três quatro cinco, seis sete oito, zero zero zero um, nove cinco",
            ),
            ("192.168.0.1", "um nove dois ponto um seis oito ponto zero ponto um"),
            ("v2.1.3", "versão dois ponto um ponto três"),
        ],
    );
}

#[test]
fn names_with_digits() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("uma H100 e A4", "uma H cem e A quatro"),
            ("COVID-19", "COVID dezenove"),
            ("GPT-4o", "G P T quatro O"),
            ("B2B e MP3", "B dois B e M P três"),
            ("o A380", "o A trezentos e oitenta"),
            ("ISO-9001", "I S O nove mil e um"),
            ("meu_arquivo", "meu arquivo"),
        ],
    );
}

#[test]
fn addresses() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("test.user@example.com", "test ponto user arroba example ponto com"),
            ("ver https://example.com/ajuda", "ver example ponto com barra ajuda"),
            ("https://example.com", "H T T P S dois pontos barra barra example ponto com"),
            ("www.uol.com.br", "W W W ponto uol ponto com ponto B R"),
            ("relatorio.pdf", "relatorio ponto P D F"),
            ("#SegundaFeira", "hashtag Segunda Feira"),
            ("@ana_silva42", "arroba ana silva quarenta e dois"),
            ("o n.º 5 e o nº 6", "o número cinco e o número seis"),
            ("#1", "número um"),
        ],
    );
}

#[test]
fn short_forms() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("O Sr. Silva e a Sra. Souza", "O senhor Silva e a senhora Souza"),
            ("D. Pedro e a Dra. Lima", "dom Pedro e a doutora Lima"),
            ("p. ex. pão", "por exemplo pão"),
            ("maçãs, peras, etc.", "maçãs, peras, etcétera."),
            ("pão, etc. e mais", "pão, etcétera e mais"),
            ("em 44 a.C.", "em quarenta e quatro antes de Cristo."),
            ("Av. Paulista, 1578", "avenida Paulista, mil quinhentos e setenta e oito"),
            ("pág. 12 e art. 3", "página doze e artigo três"),
            ("nos EUA e no séc. XXI", "nos Estados Unidos e no século vinte e um"),
            ("a Silva Ltda.", "a Silva limitada."),
            ("J. K. Rowling", "J K Rowling"),
            ("c/ leite e s/ açúcar", "com leite e sem açúcar"),
            ("aprox. 5 kg", "aproximadamente cinco quilos"),
        ],
    );
}

#[test]
fn letters_and_words_in_capitals() {
    check(
        "pt-BR",
        Conventions::DEFAULT,
        &[
            ("a ONU e a OTAN", "a Onu e a Otan"),
            ("o FBI e o SUS", "o FBI e o Sus"),
            ("meu CPF", "meu CPF"),
            ("NÃO ENTRE", "NÃO ENTRE"),
            ("a UE", "a UE"),
            ("o CEO", "o CEO"),
        ],
    );
}

#[test]
fn roman_numerals() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("Dom Pedro II e Luís XIV", "Dom Pedro segundo e Luís catorze"),
            ("Maria I", "Maria primeira"),
            ("João XXIII", "João vinte e três"),
            ("século XXI", "século vinte e um"),
            ("capítulo XII", "capítulo doze"),
            ("o XX aniversário", "o vigésimo aniversário"),
            ("o III Congresso e a V Feira", "o terceiro Congresso e a quinta Feira"),
            ("a II Guerra Mundial", "a segunda Guerra Mundial"),
            ("a UE e um CD", "a U E e um C D"),
        ],
    );
}

#[test]
fn signs() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("P&D e Tom & Ana", "P e D e Tom e Ana"),
            ("§ 5", "parágrafo cinco"),
            ("2 + 2 = 4", "dois mais dois igual a quatro"),
            ("10 - 4 = 6", "dez menos quatro igual a seis"),
            ("3 × 4", "três por quatro"),
            ("x² e 2^10", "x ao quadrado e dois elevado a dez"),
            ("a ≤ b", "a menor ou igual a b"),
            ("e/ou", "e ou"),
            ("Espere... agora", "Espere... agora"),
            ("um — dois", "um — dois"),
            ("C++", "C mais mais"),
        ],
    );
}

#[test]
fn what_agents_write() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("1h30min", "uma hora e trinta minutos"),
            ("1 h 30 min", "uma hora e trinta minutos"),
            ("às 1h30", "às uma e meia"),
            ("vol. II e cap. III", "volume dois e capítulo três"),
            ("4002-8922", "quatro zero zero dois, oito nove dois dois"),
            ("1990-2000", "mil novecentos e noventa a dois mil"),
            ("2x por dia", "duas vezes por dia"),
            ("2 x 3", "dois por três"),
            ("R$ 10-R$ 20", "dez a vinte reais"),
            ("-1/2", "menos um meio"),
            ("21-22 pessoas", "vinte e uma a vinte e duas pessoas"),
            ("30x20 cm", "trinta por vinte centímetros"),
            ("os anos '90", "os anos noventa"),
            ("D. João VI", "dom João sexto"),
            ("às 0h30", "às zero horas e trinta"),
            ("R$ 2,5 bi", "dois vírgula cinco bilhões de reais"),
            ("joao.silva@empresa.com.br", "joao ponto silva arroba empresa ponto com ponto B R"),
            ("Profa. Ana", "professora Ana"),
            ("Art. 5º", "artigo quinto"),
            ("art. 37, § 4º", "artigo trinta e sete, parágrafo quarto"),
            ("8h-18h", "oito horas a dezoito horas"),
            ("0800-123-4567", "zero oito zero zero, um dois três, quatro cinco seis sete"),
            ("1001 noites", "mil e uma noites"),
            ("empatou 2-2", "empatou dois a dois"),
            ("jan/2026", "janeiro de dois mil e vinte e seis"),
            ("21 123 4567", "dois um, um dois três, quatro cinco seis sete"),
            ("7 l/100 km", "sete litros por cem quilômetros"),
            ("século V e séc. XX", "século quinto e século vinte"),
            ("2 h/dia", "duas horas por dia"),
            ("R$ 3.500.000", "três milhões e quinhentos mil reais"),
            ("opção 2 selecionada e 2 opções", "opção dois selecionada e duas opções"),
            ("2 vezes", "duas vezes"),
            ("no km 25", "no quilômetro vinte e cinco"),
            ("1-2 dias", "um a dois dias"),
            ("Séc. I a.C. e Cap. IV", "século primeiro antes de Cristo e capítulo quatro"),
        ],
    );
}

#[test]
fn portugal() {
    check(
        "pt-PT",
        SPACED,
        &[
            ("16, 17 e 19", "dezasseis, dezassete e dezanove"),
            ("1.000.000.000", "mil milhões"),
            ("2 mil milhões de euros", "dois mil milhões de euros"),
            ("2 km", "dois quilómetros"),
            ("Custa 2,50 €.", "Custa dois euros e cinquenta cêntimos."),
            ("912 345 678", "nove um dois, três quatro cinco, seis sete oito"),
            ("sexta-feira, 2 de maio", "sexta-feira, dois de maio"),
            (
                "912 345 678 euros",
                "novecentos e doze milhões trezentos e quarenta e cinco mil seiscentos e setenta e oito euros",
            ),
            ("1.000.000.001", "mil milhões e um"),
        ],
    );
}

#[test]
fn bare_lines() {
    check(
        "pt-BR",
        SPACED,
        &[
            ("2000000001", "dois bilhões e um"),
            ("5/13", "cinco treze avos"),
            ("1/20", "um vinte avos"),
            ("Apt 45", "apartamento quarenta e cinco"),
            ("casa 123A", "casa cento e vinte e três A"),
            ("14H30", "catorze horas e trinta"),
            ("555-7162", "cinco cinco cinco, sete um seis dois"),
            ("00h", "zero horas"),
            ("No 2º andar", "No segundo andar"),
            ("No. 5", "número cinco"),
            ("às 13.45", "às treze horas e quarenta e cinco"),
            ("7.15 p.m.", "sete e quinze da noite."),
            ("5 usd", "cinco dólares americanos"),
            ("R$ 0,5", "cinquenta centavos"),
            ("IX", "nove"),
            ("o cartão termina em 4417", "o cartão termina em quatro quatro um sete"),
            ("código KX4417", "código K X quatro quatro um sete"),
        ],
    );
}
