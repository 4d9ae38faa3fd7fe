// SHA-256 against the examples of FIPS 180-4 and NIST's byte vectors.
#include "system/sha256.hpp"

#include <gtest/gtest.h>

namespace assay::falsify {
namespace {

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, EveryLengthOfTheLastBlockIsPadded) {
  // Digest of the digests of 0, 1, ... 129 bytes 'a', computed by Python's hashlib.
  std::string all;
  for (std::size_t n = 0; n < 130; ++n) all += sha256(std::string(n, 'a'));
  EXPECT_EQ(sha256(all), "c665ed20ef30f158e90c7e921d8182bc0943c4b087a82f64a18d417bcdfadce7");
}

}  // namespace
}  // namespace assay::falsify
