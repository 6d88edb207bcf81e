"""Japanese names in Latin letters, without a dictionary of the language.

Names of parties, offices, places and families are read by the tables below, the longest word
first; every other kanji has the reading that it has most often in compounds. The result is
readable and the same everywhere, but not always what a Japanese would say. Long vowels are written
short, as in `tokyo`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

# Readings of words, each before the words that have it.
_WORDS: Final = """
jiyu 自由 minshu 民主 minshuto 民主党 jiyu-minshuto 自由民主党 jiminto 自民党 rikken 立憲
kokumin 国民 komeito 公明党 kyosanto 共産党 shamin 社民 reiwa れいわ 令和 shinsengumi 新選組
ishin 維新 sanseito 参政党 hoshuto 保守党 shakai 社会 shakaito 社会党 kofuku 幸福 jitsugen 実現
minnano みんなの kibo 希望 midori みどり seiji 政治 seito 政党 shikin 資金 shushi 収支
hokokusho 報告書 hokoku 報告 kofukin 交付金 josei 助成 kifu 寄附 寄付 kokai 公開 koho 公報 公表
senkyo 選挙 kanri 管理 iinkai 委員会 iin 委員 gikai 議会 giin 議員 giindan 議員団 chiji 知事
shicho 市長 soumu 総務 somu 総務 homu 法務 gaimu 外務 zaimu 財務 monbu 文部 kagaku 科学
kosei 厚生 rodo 労働 norin 農林 suisan 水産 keizai 経済 sangyo 産業 kokudo 国土 kotsu 交通
kankyo 環境 boei 防衛 naikaku 内閣 fukko 復興 digital デジタル kinyu 金融 keisatsu 警察
shohisha 消費者 shugiin 衆議院 sangiin 参議院 kokkai 国会 honbu 本部 shibu 支部 rengokai 連合会
rengo 連合 koenkai 後援会 koen 後援 nosei 農政 undo 運動 soshiki 組織 mamoru 守る kyoiku 教育
kenkyukai 研究会 kenkyu 研究 kyokai 協会 renmei 連盟 domei 同盟 kumiai 組合 dantai 団体
shadan 社団 zaidan 財団 hojin 法人 jimusho 事務所 jimukyoku 事務局 ishikai 医師会 ishi 医師
shika 歯科 yakuzaishi 薬剤師 kango 看護 kyodo 協同 共同 nogyo 農業 gyogyo 漁業 shoko 商工
kaigisho 会議所 kaigi 会議 kensetsu 建設 fudosan 不動産 zeirishi 税理士 nenbun 年分 nendo 年度
heisei 平成 showa 昭和 teiki 定期 yoshi 要旨 ichiran 一覧 kaisan 解散 kyuyo 給与 heiwa 平和
mirai 未来 seisaku 政策 shinko 振興 kondankai 懇談会 kondan 懇談 kurabu 倶楽部 クラブ
shimin 市民 kenmin 県民 tomin 都民 fumin 府民 domin 道民 chiiki 地域 chiho 地方 zenkoku 全国
chuo 中央 nihon 日本 tokyo 東京 tokyoto 東京都 osaka 大阪 kyoto 京都 hokkaido 北海道 aomori 青森
iwate 岩手 miyagi 宮城 akita 秋田 yamagata 山形 fukushima 福島 ibaraki 茨城 tochigi 栃木
gunma 群馬 saitama 埼玉 さいたま chiba 千葉 kanagawa 神奈川 niigata 新潟 toyama 富山
ishikawa 石川 fukui 福井 yamanashi 山梨 nagano 長野 gifu 岐阜 shizuoka 静岡 aichi 愛知 mie 三重
shiga 滋賀 hyogo 兵庫 nara 奈良 wakayama 和歌山 tottori 鳥取 shimane 島根 okayama 岡山
hiroshima 広島 yamaguchi 山口 tokushima 徳島 kagawa 香川 ehime 愛媛 kochi 高知 fukuoka 福岡
saga 佐賀 nagasaki 長崎 kumamoto 熊本 oita 大分 miyazaki 宮崎 kagoshima 鹿児島 okinawa 沖縄
sapporo 札幌 sendai 仙台 yokohama 横浜 kawasaki 川崎 sagamihara 相模原 hamamatsu 浜松
nagoya 名古屋 sakai 堺 kobe 神戸 kitakyushu 北九州 kyushu 九州 shikoku 四国 tohoku 東北
kanto 関東 kansai 関西 kinki 近畿 chubu 中部 chugoku 中国 hokuriku 北陸 tokai 東海 shinjuku 新宿
shibuya 渋谷 setagaya 世田谷 chiyoda 千代田 minato 港区 sato 佐藤 suzuki 鈴木 takahashi 高橋
tanaka 田中 ito 伊藤 伊東 watanabe 渡辺 渡邊 渡部 yamamoto 山本 nakamura 中村 kobayashi 小林
kato 加藤 yoshida 吉田 yamada 山田 sasaki 佐々木 matsumoto 松本 inoue 井上 kimura 木村
saito 斎藤 齋藤 斉藤 shimizu 清水 yamazaki 山崎 ikeda 池田 hashimoto 橋本 abe 阿部 安倍 安部
yamashita 山下 nakajima 中島 ishii 石井 ogawa 小川 maeda 前田 okada 岡田 hasegawa 長谷川
fujita 藤田 goto 後藤 kondo 近藤 murakami 村上 endo 遠藤 aoki 青木 sakamoto 坂本 fukuda 福田
ota 太田 大田 nishimura 西村 fujii 藤井 fujiwara 藤原 okamoto 岡本 miura 三浦 kaneko 金子
nakano 中野 nakagawa 中川 harada 原田 matsuda 松田 takeuchi 竹内 ono 小野 大野 tamura 田村
nakayama 中山 wada 和田 ishida 石田 morita 森田 ueda 上田 uchida 内田 shibata 柴田 sakai 酒井
yokoyama 横山 takagi 高木 ando 安藤 miyamoto 宮本 kojima 小島 kudo 工藤 taniguchi 谷口 imai 今井
takada 高田 masuda 増田 maruyama 丸山 sugiyama 杉山 murata 村田 otsuka 大塚 arai 新井
koyama 小山 hirano 平野 fujimoto 藤本 kono 河野 ueno 上野 noguchi 野口 takeda 武田 matsui 松井
iwasaki 岩崎 kubo 久保 kinoshita 木下 sano 佐野 nomura 野村 matsuo 松尾 kikuchi 菊地 菊池
ichikawa 市川 sugimoto 杉本 aso 麻生 kishida 岸田 ishiba 石破 nikai 二階 takaichi 高市
koizumi 小泉 edano 枝野 tamaki 玉木 taro 太郎 ichiro 一郎 jiro 二郎 次郎 saburo 三郎
hitotsu 一つ
"""

# Kanji by the reading they most often have in compounds.
_KANJI: Final = """
a 亜阿 ai 愛哀挨 aku 悪握 an 安案暗庵 i 以位依医囲委威易為異移維緯衣違遺井伊意偉胃慰椅 iki 域
iku 育 ichi 一壱 itsu 逸 in 員因引印院陰隠飲姻韻 u 右宇羽雨 un 運雲 ei 営影映栄永英衛詠鋭泳
eki 益駅液疫役 etsu 悦越閲謁 en 円園宴延援沿演炎縁遠鉛塩媛 o 王央奥応押欧横汚黄桜翁凹殴旺
oku 億屋憶 otsu 乙 on 音温恩穏 ka 下化仮何価加可夏嫁家寡科暇果架歌河火禍稼花荷華菓課貨過霞嘉佳
ga 我画芽賀雅餓 kai 会解回塊壊快怪悔改械海界皆階開戒拐介絵 gai 外害概涯街該慨
kaku 各拡格核殻獲確穫覚角較郭閣隔革 gaku 学岳楽額 katsu 活割喝括渇滑褐
kan 官干幹患感慣換看刊勘勧巻完寒甘監管簡緩缶肝艦観貫還鑑間閑関陥館韓冠乾喚堪寛憾棺款
kan 歓汗漢環竿巌 gan 岸岩眼頑願丸含
ki 企危喜器基奇寄希幾揮机旗期棋棄機帰汽祈季紀規記貴起軌輝飢騎鬼既忌岐 gi 偽儀宜戯技擬欺犠疑義議
kiku 菊 kitsu 吉喫詰 kyaku 却客脚 gyaku 逆虐 kyu 九休丘久及吸宮弓急救求泣球究窮級糾給旧朽 gyu 牛
kyo 去居巨拒拠挙許距享京供競共凶協叫境峡強恐恭挟教橋況狂狭矯胸脅興郷鏡響驚 gyo 御漁魚凝業暁仰
kyoku 局曲極 gyoku 玉 kin 勤均斤琴禁筋緊菌襟謹近金欽錦 gin 吟銀 ku 区句苦駆 gu 具愚 ku 空
gu 偶遇隅 kutsu 屈掘 kun 君訓勲薫 gun 群軍郡 ke 気
kei 係傾刑兄啓型契形径恵慶憩掲携敬景渓系経継茎蛍計警軽鶏桂圭 gei 芸迎鯨 geki 劇撃激
ketsu 傑欠決潔穴結血 getsu 月 ken 件倹健兼券剣圏堅嫌建憲懸検権犬献研絹県見謙賢軒遣険顕験
gen 元原厳幻弦減源玄現言限 ko 個古呼固孤己庫弧戸故枯湖誇雇顧鼓虎 go 五互午呉娯後語誤護
ko 交侯候光公功効厚口向好孔孝工巧幸広康恒慌抗拘控攻更校構江洪港溝甲皇硬稿紅絞綱耕考
ko 肯航荒行衡講貢購郊酵鉱鋼降項香高宏 go 号合拷剛豪 koku 克刻告国穀酷黒谷 goku 獄 kotsu 骨
kon 困墾婚恨懇昆根混紺魂今 sa 佐唆左差査沙 za 座 sai 才採債催再最妻宰彩栽歳済災砕祭細菜裁載際埼
zai 剤在材罪財 saku 作削咲昨策索錯 satsu 冊刷察撮擦札殺 zatsu 雑 san 三参山惨散産算蚕賛酸傘
zan 残暫 shi 仕伺使刺司史嗣四士始姉姿子市師志思指支施旨枝止死氏紙紫肢脂至視詞詩試誌諮資賜雌飼
shi 歯之 ji 事似侍児字寺慈持時次滋治磁示耳自辞地 shiki 式識織色 jiku 軸 shichi 七
shitsu 失室執湿漆疾質 jitsu 実 sha 写射捨社者謝車赦遮斜煮舎 ja 蛇邪 shaku 借尺爵酌釈 jaku 若寂弱
shu 主取守手朱殊狩珠種趣酒首 ju 受寿授樹儒需 shu 収周宗就州修愁拾秀秋終習衆襲週集舟洲
ju 住充十従柔渋獣縦重銃 shuku 叔宿淑祝縮粛 juku 塾熟 shutsu 出 jutsu 術述 shun 俊春瞬駿
jun 准循旬殉準潤盾純巡遵順淳 sho 処初所暑庶緒署書諸 jo 助女序徐叙除如
sho 傷償勝商唱匠召昇昭掌承抄招床彰松沼消渉焼焦照症省硝礁祥称章笑粧紹肖衝訟証詔詳象賞
sho 鐘障升少小将翔 jo 上丈乗冗剰城場壌嬢常情条浄状畳蒸譲醸錠成 shoku 職植殖飾食触嘱 joku 辱
shin 伸信侵唇娠寝審心慎振新森浸深申真神紳臣薪親診身辛進針震津晋 jin 人仁刃尋甚尽迅陣 zu 図
sui 水垂帥推炊睡粋吹衰遂酔錘 zui 随髄瑞 su 数枢崇 sun 寸 ze 是
sei 世制勢姓征性政整星晴正清牲生盛精聖声製西誠誓請逝青静斉 zei 税
seki 夕席惜斥昔析石積籍績責赤跡隻碩 setsu 切折拙摂接設窃節説雪 zetsu 絶舌
sen 千占先宣専川戦扇栓泉浅洗染潜旋線繊船薦践選遷銭鮮仙 zen 全前善漸然禅 so 礎祖租粗素組訴阻疎曽
so 倉創双喪壮奏層想捜掃操早巣槽燥争相窓総草荘葬藻装走送遭霜騒爽聡 zo 像増憎臓蔵贈造
soku 促側則即息束測足速 zoku 俗属族続賊 sotsu 卒 son 存孫尊損村 ta 他多太 da 堕打妥惰駄
tai 体対耐帯待怠態替泰滞胎袋貸退逮隊 dai 代台大第題 taku 宅択拓沢濯託卓琢 daku 諾濁 tatsu 達
datsu 脱奪 tan 丹単嘆担探淡炭短端胆誕鍛 dan 団壇弾断暖段男談 chi 値知恥池痴稚置致遅智
chiku 竹築蓄逐畜筑 chitsu 秩窒 cha 茶 chaku 着嫡 chu 中仲宙忠抽昼柱注虫衷鋳駐 cho 著貯
cho 丁兆帳庁弔張彫徴懲挑朝潮町眺聴腸調超跳長頂鳥 choku 勅直 chin 沈珍賃鎮陳 tsui 墜追 tsu 通
tei 亭低停偵貞呈堤定帝底庭弟抵提程締艇訂逓邸鼎 deki 溺 teki 摘敵滴的笛適 tetsu 哲徹撤迭鉄
ten 天典展店添転点 den 伝殿電田 to 吐塗徒斗渡登途都 do 努度土奴
to 倒党冬凍刀唐塔島投東桃棟盗湯灯当痘等答筒糖統到討謄豆踏逃透陶頭騰藤 do 働動同堂導洞童道銅
toku 匿得徳特督篤 doku 毒独読 totsu 突凸 ton 屯豚 don 鈍曇 na 那 nai 内 nan 南軟難 ni 二弐尼
niku 肉 nichi 日 nyu 入乳 nyo 尿 nin 任忍認 nei 寧 netsu 熱 nen 年念燃粘 no 悩濃納能脳農
ha 把覇波派破 ba 婆馬 hai 俳廃拝排敗杯背肺輩配 bai 倍培媒梅買売賠陪 haku 伯博拍泊白舶薄迫
baku 漠爆縛麦 hachi 八 hatsu 発髪鉢 batsu 伐罰抜閥 han 半反帆搬板版犯班畔繁般藩販範煩頒飯坂阪
ban 晩番盤蛮万 hi 卑否妃彼悲扉批披比泌疲皮碑秘罷肥被費避非飛 bi 備尾微美 hitsu 匹必筆 hyaku 百
hyo 俵標氷漂票表評 byo 描病秒苗 hin 品浜貧賓 bin 敏瓶
fu 不付夫婦富布府怖扶敷普浮父符腐膚譜負賦赴附阜 bu 侮武舞部 fu 封風 fuku 伏副復幅服福腹複覆
futsu 払沸 butsu 物仏 fun 噴墳憤奮粉紛 bun 分文聞 hei 丙併兵塀幣平弊柄並閉陛 bei 米 heki 壁癖
betsu 別 hen 偏変片編辺返遍 ben 便勉弁 ho 保舗捕歩補穂甫 bo 募墓慕暮母
ho 俸包報奉宝峰崩抱放方法泡砲縫胞芳褒訪豊邦飽 bo 亡傍剖坊妨帽忘忙房暴望某棒冒紡肪膨謀貿防
hoku 北 boku 僕墨撲朴牧木 botsu 没 hon 本奔翻 bon 凡盆 ma 摩磨魔麻 mai 埋妹枚毎 maku 膜幕
matsu 末抹 man 慢満漫 mi 味未魅 mitsu 密 myaku 脈 myo 妙 min 民眠 mu 務夢無矛霧
mei 名命明盟迷銘鳴 metsu 滅 men 免綿面 mo 模 妄毛猛盲網耗 moku 目黙 mon 門紋問 ya 夜野矢弥
yaku 厄約薬訳躍 yu 油輸愉癒諭 yui 唯 yu 優勇友幽悠憂有猶由裕誘遊郵雄融 yo 与余誉預
yo 容庸揚揺擁曜様洋溶用窯羊葉要謡踊陽養幼 yoku 抑欲浴翌翼 ra 羅裸 rai 来頼雷 raku 絡落酪
ran 乱卵欄覧 ri 利吏履理痢裏里離 riku 陸 ritsu 律率立 ryaku 略 ryu 流留硫粒隆竜龍 ryo 旅虜慮
ryo 両了僚寮料涼猟療糧良量陵領亮 ryoku 力緑 rin 倫厘林臨輪隣 rui 塁涙累類
rei 令例冷励礼鈴隷零霊麗齢 reki 暦歴 retsu 列劣烈裂 ren 連廉恋練錬 ro 路露炉 労廊朗楼浪漏老郎
roku 六録 ron 論 wa 和話 wai 賄 waku 惑枠 wan 湾腕 nara 奈 go 吾 kaji 梶 saki 崎 oka 岡 sawa 澤
tsuji 辻 hata 畑
"""

_KANJI_RUN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々]+")


def romanised_kanji(text: str) -> str:
    """The text with its kanji in Latin letters, words apart; unknown kanji are left as they are."""
    return _KANJI_RUN.sub(lambda match: f" {' '.join(_readings(match[0]))} ", _read_words(text))


def _read_words(text: str) -> str:
    words = _words()
    pattern = _word_pattern()
    return pattern.sub(lambda match: f" {words[match[0]]} ", text)


def _readings(run: str) -> Iterator[str]:
    """Two kanji at a time as a word: most words have two, and longer ones are hard to read."""
    readings = _kanji()
    sounds = [
        readings.get(run[at - 1] if each == "々" and at else each, each)
        for at, each in enumerate(run)
    ]
    for at in range(0, len(sounds), 2):
        yield "".join(sounds[at : at + 2])


@cache
def _word_pattern() -> re.Pattern[str]:
    by_length = sorted(_words(), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, by_length)))


@cache
def _words() -> dict[str, str]:
    return dict(_pairs(_WORDS))


@cache
def _kanji() -> dict[str, str]:
    return {kanji: reading for group, reading in _pairs(_KANJI) for kanji in group}


def _pairs(table: str) -> Iterator[tuple[str, str]]:
    """Each Japanese entry of a table with the reading before it."""
    reading = ""
    for entry in table.split():
        if entry.isascii():
            reading = entry
        else:
            yield entry, reading
