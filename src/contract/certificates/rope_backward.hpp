// The gradient of rope is a rotation too.
#pragma once

#include "contract/certificates/rope.hpp"
