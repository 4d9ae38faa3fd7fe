#include "cli/learning_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace assay::cli {
namespace learning_curve {
namespace {

using Field = double CurveRow::*;
constexpr Field kNumbers[] = {&CurveRow::lr,   &CurveRow::loss,          &CurveRow::accuracy,
                              &CurveRow::norm, &CurveRow::held_out_loss, &CurveRow::held_out_accuracy};
constexpr int kWidth = 720, kHeight = 220, kLeft = 60, kTop = 12, kBottom = 28, kRight = 12;
constexpr std::size_t kPoints = 400;  // of a line

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') safe += "&lt;";
    else if (c == '>') safe += "&gt;";
    else if (c == '&') safe += "&amp;";
    else if (c == '"') safe += "&quot;";
    else safe += c;
  }
  return safe;
}

struct Point {
  double x, y;
};

/// The finite values of a field, as means of stretches where there are too many.
std::vector<Point> points(const std::vector<CurveRow>& rows, Field field, std::size_t most) {
  std::vector<Point> all;
  for (const CurveRow& row : rows)
    if (std::isfinite(row.*field)) all.push_back({static_cast<double>(row.step), row.*field});
  if (all.size() <= most) return all;
  std::vector<Point> means;
  for (std::size_t n = 0; n < most; ++n) {
    const std::size_t begin = n * all.size() / most, end = (n + 1) * all.size() / most;
    Point mean{0, 0};
    for (std::size_t i = begin; i < end; ++i) mean.x += all[i].x, mean.y += all[i].y;
    const auto count = static_cast<double>(end - begin);
    means.push_back({mean.x / count, mean.y / count});
  }
  return means;
}

/// A round step between ticks, about five of which fill the range.
double tick_step(double range) {
  const double raw = range / 5, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

struct Line {
  std::string name, color;
  std::vector<Point> points;
  bool dots = false;
};

std::string panel(const std::string& title, const std::vector<Line>& lines, double last, double least, double most) {
  for (const Line& line : lines)
    for (const Point& p : line.points) least = std::min(least, p.y), most = std::max(most, p.y);
  if (!(most > least)) most = least + 1;
  const auto x = [&](double step) {
    return kLeft + (kWidth - kLeft - kRight) * (last > 1 ? (step - 1) / (last - 1) : 0.5);
  };
  const auto y = [&](double v) {
    return kHeight - kBottom - (kHeight - kBottom - kTop) * (v - least) / (most - least);
  };
  std::string s = fmt::format("<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n", title,
                              kWidth, kHeight, title);
  const double step = tick_step(most - least), along = std::max(1.0, tick_step(last));
  for (double v = std::ceil(least / step) * step; v <= most + step / 1000; v += step)
    s += fmt::format(
        "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" class=\"left\">{:.4g}</text>\n", kLeft,
        y(v), kWidth - kRight, kLeft - 6, y(v) + 4, v + 0.0);
  for (double v = along; v <= last; v += along)
    s += fmt::format("<text x=\"{:.1f}\" y=\"{}\" class=\"below\">{:.6g}</text>\n", x(v), kHeight - 8, v);
  for (const Line& line : lines) {
    std::string path;
    for (const Point& p : line.points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(p.x), y(p.y));
      if (line.dots)
        s += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", x(p.x), y(p.y), line.color);
    }
    if (!path.empty()) s += fmt::format("<path class=\"line\" stroke=\"{}\" d=\"{}\"/>\n", line.color, path);
  }
  s += "</svg>\n<p class=\"key\">";
  for (const Line& line : lines)
    if (!line.points.empty())
      s += fmt::format("<span style=\"color:{}\">&#9632;</span> {} &nbsp; ", line.color, line.name);
  return s + "over updates</p>\n";
}

std::string number(double x) { return std::isnan(x) ? "" : fmt::format("{}", x); }

}  // namespace
}  // namespace learning_curve

std::string curve_csv(const std::vector<CurveRow>& rows) {
  std::string text = "epoch,step,samples,lr,loss,accuracy,norm,held_out_loss,held_out_accuracy\n";
  for (const CurveRow& row : rows) {
    text += fmt::format("{},{},{}", row.epoch, row.step, row.samples);
    for (const auto field : learning_curve::kNumbers) text += ',' + learning_curve::number(row.*field);
    text += '\n';
  }
  return text;
}

std::string curve_html(const std::vector<CurveRow>& rows, const std::string& title,
                       const std::vector<std::pair<std::string, std::string>>& summary) {
  using namespace learning_curve;
  const double last = rows.empty() ? 1 : static_cast<double>(rows.back().step);
  const auto line = [&](const char* name, const char* color, Field field, bool dots = false) {
    return Line{name, color, points(rows, field, dots ? rows.size() : kPoints), dots};
  };
  std::string s =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>" +
      escaped(title) +
      "</title>\n<style>body{font:15px system-ui,sans-serif;max-width:760px;margin:2em auto;padding:0 1em;color:#222}"
      "h1{font-size:1.4em}h2{font-size:1.05em;margin:1.4em 0 .3em}svg{width:100%;background:#fafafa}"
      "svg text{font-size:11px;fill:#555}.left{text-anchor:end}.below{text-anchor:middle}.grid{stroke:#ddd}"
      ".line{fill:none;stroke-width:1.5}.key{margin:.2em 0;color:#555}td{padding:.1em 1em .1em 0}</style></head>\n<body><h1>" +
      escaped(title) + "</h1>\n<table>\n";
  for (const auto& [key, value] : summary)
    s += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(key), escaped(value));
  s += "</table>\n";
  s +=
      panel("Loss",
            {line("training", "#4477aa", &CurveRow::loss), line("held out", "#cc3311", &CurveRow::held_out_loss, true)},
            last, 0, 0);
  s += panel("Accuracy",
             {line("training", "#4477aa", &CurveRow::accuracy),
              line("held out", "#cc3311", &CurveRow::held_out_accuracy, true)},
             last, 0, 1);
  s += panel("Norm of the mean gradient, before it is clipped", {line("norm", "#228833", &CurveRow::norm)}, last, 0, 0);
  return s + "</body></html>\n";
}

nlohmann::json to_json(const std::vector<CurveRow>& rows) {
  nlohmann::json all = nlohmann::json::array();
  for (const CurveRow& row : rows) {
    nlohmann::json one{row.epoch, row.step, row.samples};
    for (const auto field : learning_curve::kNumbers) {
      const double x = row.*field;
      one.push_back(std::isinf(x) ? nlohmann::json(x > 0 ? "inf" : "-inf") : nlohmann::json(x));  // NaN is null
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<CurveRow> curve_from(const nlohmann::json& rows) {
  std::vector<CurveRow> all;
  for (const nlohmann::json& one : rows) {
    CurveRow row{one.at(0), one.at(1), one.at(2)};
    std::size_t n = 3;
    for (const auto field : learning_curve::kNumbers) {
      const nlohmann::json& x = one.at(n++);
      row.*field = x.is_null() ? NAN : x.is_string() ? (x == "inf" ? INFINITY : -INFINITY) : x.get<double>();
    }
    all.push_back(row);
  }
  return all;
}

}  // namespace assay::cli
