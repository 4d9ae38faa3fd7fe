#pragma once

#include "contract/certificates/nf4_matmul.hpp"
