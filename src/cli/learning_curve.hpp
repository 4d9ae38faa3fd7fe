// Figures of a training run, update by update: as CSV, and as one HTML page that needs nothing else.
#pragma once

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/shape.hpp"

namespace assay::cli {

/// An update. The figures of the samples held out are NaN, except behind an epoch.
struct CurveRow {
  Index epoch = 0, step = 0, samples = 0;  ///< from 1; samples of this update
  double lr = 0, loss = 0, accuracy = 0, norm = 0;
  double held_out_loss = NAN, held_out_accuracy = NAN;
};

/// Numbers have the digits that give back their bits; NaN is an empty field.
std::string curve_csv(const std::vector<CurveRow>& rows);
/// Loss, accuracy and norm over updates, each drawn in SVG; long runs as means of stretches.
std::string curve_html(const std::vector<CurveRow>& rows, const std::string& title,
                       const std::vector<std::pair<std::string, std::string>>& summary);

/// For checkpoints: every bit comes back.
nlohmann::json to_json(const std::vector<CurveRow>& rows);
std::vector<CurveRow> curve_from(const nlohmann::json& rows);

}  // namespace assay::cli
