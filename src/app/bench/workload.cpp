#include "workload.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "tts/base/utf8.h"

namespace tts::bench {
namespace {

constexpr std::size_t kVariants = 6;
// A text may miss the asked length by this share; what does not fit is left out.
constexpr double kTolerance = 0.15;

constexpr std::array<std::string_view, 32> kChinese{"气象台发布暴雨预警。",
                                                    "今天凌晨，南方多地迎来入夏以来最强的一场降雨。",
                                                    "你先别急，慢慢说。",
                                                    "记者从教育部门了解到，新学期将全面推行课后托管服务。",
                                                    "哎，你把钥匙放哪儿了？",
                                                    "经过三年修复，这座百年老桥昨天重新通车，沿岸居民纷纷前来散步拍照。",
                                                    "没关系，下次注意。",
                                                    "研究人员在深海发现一种会发光的新水母。",
                                                    "别闹了，快点儿睡觉！",
                                                    "妈，我今晚加班，不回家吃饭了，你们先吃。",
                                                    "晚饭想吃点儿什么？",
                                                    "老板，来两碗牛肉面，一碗不要香菜，多放点辣。",
                                                    "这趟车经过广场吗？",
                                                    "说真的，我没想到你会来，谢谢你陪我走这一段路。",
                                                    "女排姑娘们逆转取胜，挺进决赛。",
                                                    "从乌鲁木齐到喀什，火车要走一天一夜。",
                                                    "你要是不喜欢这个颜色，我们可以换一件，反正标签还没剪。",
                                                    "周末的早上，菜市场里总是特别热闹。",
                                                    "请拨打客服热线，我们会在当天给您回电。",
                                                    "他把旧自行车擦得锃亮，推到院子里晒太阳。",
                                                    "为什么天空是蓝的，而晚霞却是红的？",
                                                    "图书馆新到了一批小说，借阅的人排起了长队。",
                                                    "村里新修的灌溉渠通水那天，老人们站在田埂上，看着清水一路流进自家稻田。",
                                                    "我们班有三分之一的同学戴眼镜。",
                                                    "下一站换乘地铁，请从左边的车门下车。",
                                                    "你觉得先做方案好，还是先跟客户聊一聊好？",
                                                    "小荷姐姐住在朝阳路，每天骑车去长安街上班。",
                                                    "山顶的雪还没化，山脚下的桃花已经开了。",
                                                    "长沙的臭豆腐，天津的大麻花，你更想吃哪一样？",
                                                    "难道你真的不记得我了？",
                                                    "外婆做的汤圆又软又甜，一口咬下去满嘴都是芝麻香。",
                                                    "专家提醒，高温天气不要长时间在户外运动，出现头晕等症状要及时就医。"};

constexpr std::array<std::string_view, 32> kEnglish{"Good night!",
                                                    "Heavy rain closed two mountain roads late last night.",
                                                    "Yes, please.",
                                                    "The museum will stay open until midnight during the summer festival.",
                                                    "Come here.",
                                                    "Could you pass me the salt, please?",
                                                    "How nice!",
                                                    "Police are looking for a grey van seen near the bakery on Tuesday evening.",
                                                    "Thank you.",
                                                    "Well, that depends on what you mean by early.",
                                                    "Not today.",
                                                    "I thought you were allergic to cats!",
                                                    "Don't worry about the dishes, I'll wash them when I get back from the shop.",
                                                    "They won four two and moved up to fifth place.",
                                                    "Where did you park?",
                                                    "Siobhan plays the cello with Joaquin every Thursday.",
                                                    "How long does it take to walk to the beach from here?",
                                                    "About sixty two percent of the seats were sold by March third.",
                                                    "Voters approved the plan.",
                                                    "The road from Leicester to Worcester passes a small brewery.",
                                                    "Her sister repairs old clocks in a workshop behind the station.",
                                                    "Wait, did you hear that?",
                                                    "Mix one half cup of sugar with three quarters cup of milk.",
                                                    "My phone fell into the lake.",
                                                    "Isn't it strange that nobody noticed the missing painting for a week?",
                                                    "The next train leaves from platform nine.",
                                                    "Margaret Okafor teaches chemistry in Edinburgh.",
                                                    "The children built a boat out of two doors and a bed sheet.",
                                                    "Please close the window.",
                                                    "We counted eleven herons on the river this morning.",
                                                    "The tower is eighty seven metres tall.",
                                                    "He left his umbrella on the bus again, so we walked home in the rain."};

// Sentences from `first` on, round the stock, as long as they fit.
std::string compose(std::span<const std::string_view> stock, std::string_view separator, std::size_t first, std::size_t length) {
  const double least = static_cast<double>(length) * (1 - kTolerance), most = static_cast<double>(length) * (1 + kTolerance);
  std::string text;
  std::size_t characters = 0;
  for (std::size_t i = 0; static_cast<double>(characters) < least && i < stock.size(); ++i) {
    const auto sentence = stock[(first + i) % stock.size()];
    const auto joint = text.empty() ? std::string_view() : separator;
    const auto longer = characters + joint.size() + count_code_points(sentence);
    if (static_cast<double>(longer) > most) continue;
    text.append(joint).append(sentence);
    characters = longer;
  }
  return text;
}

Text parse_line(const std::string& line) {
  if (line.front() != '{') return {.text = line, .language = {}};
  const auto row = nlohmann::json::parse(line);
  return {.text = row.at("text").get<std::string>(), .language = row.value("lang", std::string())};
}

}  // namespace

std::vector<Text> built_in_texts(std::string_view language, std::size_t length) {
  const bool chinese = language == "zh";
  if (!chinese && language != "en") throw std::invalid_argument("there are built-in texts in zh and en, not in " + std::string(language));
  const auto stock = std::span<const std::string_view>(chinese ? kChinese : kEnglish);
  std::vector<Text> texts;
  for (std::size_t first = 0; first < stock.size() && texts.size() < kVariants; ++first) {
    auto text = compose(stock, chinese ? "" : " ", first, length);
    const auto same = [&](const Text& other) { return other.text == text; };
    if (!text.empty() && std::none_of(texts.begin(), texts.end(), same)) texts.push_back({std::move(text), std::string(language)});
  }
  if (texts.empty()) throw std::invalid_argument("there is no built-in text of " + std::to_string(length) + " characters");
  return texts;
}

std::vector<Text> read_texts(const std::filesystem::path& file) {
  std::ifstream stream(file);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  std::vector<Text> texts;
  std::string line;
  for (std::size_t number = 1; std::getline(stream, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty()) continue;
    const auto where = file.string() + ":" + std::to_string(number) + ": ";
    if (find_invalid_utf8(line)) throw std::runtime_error(where + "not valid UTF-8");
    try {
      texts.push_back(parse_line(line));
    } catch (const nlohmann::json::exception&) {
      throw std::runtime_error(where + "neither a plain text nor JSON with a \"text\"");
    }
  }
  if (texts.empty()) throw std::runtime_error(file.string() + " holds no text");
  return texts;
}

void shuffle(std::vector<Text>& texts, std::uint64_t seed) {
  std::mt19937_64 random(seed);  // its sequence is part of the standard, std::shuffle's use of it is not
  for (std::size_t i = texts.size(); i > 1; --i) std::swap(texts[i - 1], texts[random() % i]);
}

}  // namespace tts::bench
