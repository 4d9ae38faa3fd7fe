// Tokens of a source: all of its code, without space and comments.
#include "falsify/gate/tokens.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <random>

namespace assay::falsify {
namespace {

using Words = std::vector<std::string>;
using Kind = Token::Kind;

Words words(const std::vector<Token>& tokens) {
  Words list;
  for (const Token& token : tokens) list.push_back(token.text);
  return list;
}
Words code(const std::string& text) { return words(code_tokens(text)); }
Words cmake(const std::string& text) { return words(cmake_tokens(text)); }

TEST(Code, IsTakenByTheLongestMatch) {
  EXPECT_EQ(code("a+++b- -c->*d<<=e>>>f"),
            (Words{"a", "++", "+", "b", "-", "-", "c", "->*", "d", "<<=", "e", ">>>", "f"}));
  EXPECT_EQ(code("f<<<1,2>>>(x)"), (Words{"f", "<<<", "1", ",", "2", ">>>", "(", "x", ")"}));
  EXPECT_EQ(code("A<::B>x<:0:>"), (Words{"A", "<", "::", "B", ">", "x", "<:", "0", ":>"}));
  EXPECT_NE(code("a+ +b"), code("a++b"));
  EXPECT_NE(code("a- >b"), code("a->b"));
}

TEST(Code, NumbersHaveSeparatorsAndSigns) {
  EXPECT_EQ(code("1'000'000+0x1.8p-3f-.5e+10"), (Words{"1'000'000", "+", "0x1.8p-3f", "-", ".5e+10"}));
  EXPECT_EQ(code("1e5+'a'"), (Words{"1e5", "+", "'a'"}));
  EXPECT_NE(code("10'00"), code("1000")) << "as written";
}

TEST(Code, LiteralsHoldWhatLooksLikeComments) {
  EXPECT_EQ(code("\"// no\" '/' \"/* \\\" */\" x"), (Words{"\"// no\"", "'/'", "\"/* \\\" */\"", "x"}));
  EXPECT_EQ(code("u8\"a\"s u8 \"a\" s"), (Words{"u8\"a\"s", "u8", "\"a\"", "s"}));
  EXPECT_EQ(code("#error don't\nx"), (Words{"#", "error", "don", "'t", "\n", "x"}));
}

TEST(Code, RawStringsKeepTheirBytes) {
  EXPECT_EQ(code("R\"x(a )\" // \\\n\"b)x\" y"), (Words{"R\"x(a )\" // \\\n\"b)x\"", "y"}));
  EXPECT_EQ(code("uR\"(\n#include \"no\"\n)\"_s z"), (Words{"uR\"(\n#include \"no\"\n)\"_s", "z"}));
  EXPECT_NE(code("R\"(a  b)\""), code("R\"(a b)\""));
  EXPECT_EQ(code("ER\"(a)\""), (Words{"ER", "\"(a)\""}));
}

TEST(Code, LinesAreJoinedByABackslash) {
  EXPECT_EQ(code("// a \\\n b\nc"), Words{"c"});
  EXPECT_EQ(code("ab\\\ncd /\\\n* x */ e"), (Words{"abcd", "e"}));
  EXPECT_EQ(code("#define A \\\r\n 1\nb"), (Words{"#", "define", "A", "1", "\n", "b"}));
}

TEST(Code, DirectivesEnd) {
  EXPECT_NE(code("#define A\nb"), code("#define A b\n"));
  EXPECT_NE(code("#define F(x) x\n"), code("#define F (x) x\n"));
  EXPECT_EQ(code(" /* a */ # /* b\n */ include <a//b.h> // c"), (Words{"#", "include", "<a//b.h>", "\n"}));
  EXPECT_EQ(code_tokens("\xef\xbb\xbf#x")[0].kind, Kind::directive);
  EXPECT_EQ(code_tokens("\f\v#x")[0].kind, Kind::directive);
  EXPECT_EQ(code_tokens("%:x")[0].kind, Kind::directive);
  EXPECT_EQ(code_tokens("a #x")[1].kind, Kind::plain);
}

TEST(Code, PlacesAreLines) {
  const auto tokens = code_tokens("a\\\nb\n/*\n*/ c R\"(\n)\" d");
  ASSERT_EQ(tokens.size(), 4U);
  EXPECT_EQ(tokens[0].line, 1);
  EXPECT_EQ(tokens[1].line, 4);
  EXPECT_EQ(tokens[3].line, 5);
}

TEST(Code, IsNotTakenWhereCompilersReadItInSeveralWays) {
  EXPECT_NE(token_ambiguity("\?\?=include <a>"), "");
  EXPECT_NE(token_ambiguity("// a\?\?/\nb"), "");
  EXPECT_NE(token_ambiguity("a\rb"), "");
  EXPECT_NE(token_ambiguity("// a\\ \nb"), "");
  EXPECT_EQ(token_ambiguity("a\r\n\\\r\nb\\\n '\\ ' \"\?\?\""), "");
}

TEST(Code, AdjacentLiteralsAreOneValue) {
  const auto tokens = code_tokens(R"--(".inc" u8"\x62\151n" R"(\x)" x)--");
  std::size_t at = 0;
  EXPECT_EQ(joined_value(tokens, at), ".incbin\\x");
  EXPECT_EQ(at, 3U);
}

/// Lines of code as lists of tokens; a directive has a line of its own.
struct Line {
  bool directive;
  Words tokens;
};

struct Random {
  std::mt19937 engine;
  std::size_t below(std::size_t n) { return engine() % n; }
  const std::string& of(const Words& list) { return list[below(list.size())]; }
};

const Words kTokens = {"a",
                       "b9",
                       "int",
                       "_x",
                       "operator",
                       "1",
                       "0x1.8p+3",
                       "1'000",
                       ".5f",
                       "\"s\"",
                       "\"//\"",
                       "'\"'",
                       "u8\"/*\"",
                       "R\"(//\n\\\n)\"",
                       "R\"d( )\" )d\"_x",
                       "+",
                       "++",
                       "+=",
                       "->",
                       "->*",
                       "<<<",
                       ">>>",
                       "::",
                       "<:",
                       "%>",
                       "...",
                       "<=>",
                       "/",
                       "*",
                       "%",
                       "#",
                       "&&",
                       "L'x'",
                       "{",
                       "}",
                       "(",
                       ")",
                       ";",
                       ",",
                       "import_x",
                       "\xc3\xa4",
                       "==",
                       "!",
                       "~"};

std::vector<Line> random_code(Random& random) {
  std::vector<Line> lines;
  for (std::size_t n = 1 + random.below(6); n > 0; --n) {
    Line line{random.below(3) == 0, {}};
    if (line.directive) line.tokens = {"#", random.of({"pragma", "if", "undef"})};
    for (std::size_t k = 1 + random.below(8); k > 0; --k) {
      const std::string& token = random.of(kTokens);
      // A directive is one line, and a # in the middle of a line starts none.
      if ((line.directive && token.find('\n') != std::string::npos) || (!line.directive && token == "#")) continue;
      line.tokens.push_back(token);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

/// Writes the same tokens with random space and comments in between.
std::string written(const std::vector<Line>& lines, Random& random) {
  static const Words within = {" ", "\t", " /* a // b */ ", " /*\n*/ ", " \\\n ", "\v ", "  "};
  static const Words between = {"\n", " // why\n", "\r\n", " /* x */ ", "\n\n\t", " // \\\n more\n", " //* x\n"};
  std::string text;
  for (const Line& line : lines) {
    if (line.directive) text += random.of({"\n", "\n /* a */ ", "// x\n  "});
    for (std::size_t i = 0; i < line.tokens.size(); ++i)
      text += line.tokens[i] + random.of(line.directive || random.below(2) == 0 ? within : between);
    text += line.directive ? random.of({"\n", "// end\n", "/**/\n"}) : random.of(between);
  }
  return text;
}

TEST(CodeProperty, SpaceAndCommentsChangeNothingAndEveryTokenDoes) {
  Random random{std::mt19937(20240611)};
  for (int round = 0; round < 3000; ++round) {
    std::vector<Line> lines = random_code(random);
    const std::string text = written(lines, random), again = written(lines, random);
    const Words said = code(text);
    ASSERT_EQ(said, code(again)) << text << "\n----\n" << again;
    Line& line = lines[random.below(lines.size())];
    if (line.tokens.empty()) continue;
    std::string& token = line.tokens[random.below(line.tokens.size())];
    const bool begins = line.directive && &token == &line.tokens[0];
    if (begins) line.tokens.erase(line.tokens.begin() + 1);
    else token += token.ends_with('"') || std::isalnum(static_cast<unsigned char>(token.back())) != 0 ? "_" : " Q";
    ASSERT_NE(said, code(written(lines, random))) << text;
  }
}

TEST(CMake, HasWordsArgumentsAndComments) {
  EXPECT_EQ(
      cmake("set(a b) # c\n#[[ x\n) ]] f(\"a # b\" [=[ # ]] ]=] -DX=\"a b\" \\# ${c})"),
      (Words{"set", "(", "a", "b", ")", "f", "(", "\"a # b\"", "[=[ # ]] ]=]", "-DX=\"a b\"", "\\#", "${c}", ")"}));
  EXPECT_NE(cmake("f(\"a b\")"), cmake("f(a b)"));
  EXPECT_NE(cmake("f(\"a;b\")"), cmake("f(a;b)"));
  EXPECT_EQ(cmake_tokens("f(\"a\")")[2].kind, Kind::string);
  EXPECT_EQ(cmake("f(a\n   b)"), cmake("f( a b )"));
  EXPECT_EQ(cmake("f(a#c\nb)"), cmake("f(a b)"));
  EXPECT_EQ(cmake("f(\"a\\\"#\" b)"), (Words{"f", "(", "\"a\\\"#\"", "b", ")"}));
}

TEST(Python, LosesItsComments) {
  EXPECT_EQ(python_text("# a\nif x:  # b\n\n  y = '#' \"\"\"\n#\"\"\"\n"), "if x:\n  y = '#' \"\"\"\n#\"\"\"\n");
  EXPECT_NE(python_text("if x:\n  y\n"), python_text("if x:\n y\n"));
}

TEST(Yaml, IsHashedAsLoaded) {
  EXPECT_EQ(yaml_text("a: 1  # why\nb: [x, 'y']\n"), yaml_text("b:\n  - \"x\"\n  - y\n\na:   1\n"));
  EXPECT_EQ(yaml_text("op: f\nsummary: s\nsources: [t]\nrequires: [{id: X, says: u}]"),
            yaml_text("op: f\nrequires: [{id: X}]"));
  EXPECT_NE(yaml_text("a: 1"), yaml_text("a: 1.0"));
  EXPECT_NE(yaml_text("a: [b, c]"), yaml_text("a: [c, b]"));
  EXPECT_NE(yaml_text("a: [b, c]"), yaml_text("a: ['b, c']"));
  EXPECT_NE(yaml_text("a: ~"), yaml_text("a: '~'"));
  EXPECT_NE(yaml_text("if_fails: x"), yaml_text("if_fails: y"));
}

TEST(Yaml, ArgumentsKeepTheirOrderAndTheirNames) {
  EXPECT_NE(yaml_text("tensors: {a: {role: in}, b: {role: in}}"), yaml_text("tensors: {b: {role: in}, a: {role: in}}"));
  EXPECT_EQ(yaml_text("tensors: {a: {role: in, says: x}}"), yaml_text("tensors: {a: {says: y, role: in}}"));
  EXPECT_NE(yaml_text("tensors: {sources: {role: in}}"), yaml_text("tensors: {sources: {role: out}}"));
  EXPECT_NE(yaml_text("tensors: {says: {role: in, says: x}}"), yaml_text("tensors: {says: {role: out, says: x}}"));
  EXPECT_NE(yaml_text("dims: {dims: {says: x, max: 1}}"), yaml_text("dims: {dims: {says: x, max: 2}}"));
  EXPECT_EQ(yaml_text("dims: {dims: {says: x, max: 1}}"), yaml_text("dims: {dims: {max: 1, says: y}}"))
      << "a dim of that name is no list of dims";
  EXPECT_NE(yaml_text("requires: [{violate: {shape: {says: '[m]'}}}]"),
            yaml_text("requires: [{violate: {shape: {says: '[n]'}}}]"));
  EXPECT_NE(yaml_text("exp: {sources: 1}"), yaml_text("exp: {sources: 2}"));
  EXPECT_EQ(yaml_text("pins: {a: {by: 1}, b: {by: 2}}"), yaml_text("pins: {b: {by: 2}, a: {by: 1}}"));
}

TEST(Json, IsHashedAsLoaded) {
  EXPECT_EQ(json_text("{\"a\": 1, \"b\": [2]}"), json_text("{\"b\":[2],\n\"a\":1}"));
  EXPECT_NE(json_text("{\"a\": 1}"), json_text("{\"a\": 2}"));
}

}  // namespace
}  // namespace assay::falsify
